#include "fcp/scores/margin_bounds.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/infinity.h"
#include "fcp/base/memory.h"
#include "fcp/scores/radius_search.h"

namespace fcp {
namespace {

constexpr int64_t kRowsOfABatch = 1024;  // whose differences are looked at together

// The weights of all differences and their bounds' temporaries.
void check_pairs_fit(const AffineTail& tail, const BoundOptions& bound) {
  const auto classes = static_cast<double>(tail.weight.size(0));
  const double bytes = classes * classes * (static_cast<double>(tail.weight.size(1)) * 3 + 24) * 4;
  const size_t allowed = bound.memory > 0 ? bound.memory : available_memory() / 2;
  if (allowed == 0 || bytes <= static_cast<double>(allowed)) return;
  fail("feature_margin: the differences of all pairs of ", tail.weight.size(0),
       " labels through a ", "head of more than one layer take ",
       static_cast<int64_t>(bytes / (1 << 20)), " MiB, but ", allowed >> 20,
       " MiB are there; cut at the last layer (cut -1)");
}

// front → u → [N, C · C]: at k · C + j the difference z_j − z_k.
Graph difference_graph(const AffineTail& tail) {
  const int64_t classes = tail.weight.size(0);
  const auto all_pairs = [&](const torch::Tensor& rows) {  // [C, …] → [C², …]
    return (rows.unsqueeze(0) - rows.unsqueeze(1)).flatten(0, 1).contiguous();
  };
  Graph graph = tail.front;
  const TensorInfo u = graph.outputs[0];
  std::string flat = u.name;
  if (u.shape.size() != 2) {
    flat = "fcp.flat";
    graph.nodes.push_back({flat, "Flatten", "", {u.name}, {flat}, {{"axis", int64_t{1}}}});
  }
  graph.initializers["fcp.difference_weight"] = all_pairs(tail.weight);
  graph.initializers["fcp.difference_bias"] = all_pairs(tail.bias);
  graph.nodes.push_back({"fcp.differences",
                         "Gemm",
                         "",
                         {flat, "fcp.difference_weight", "fcp.difference_bias"},
                         {"fcp.differences"},
                         {{"transB", int64_t{1}}}});
  TensorInfo output;
  output.name = "fcp.differences";
  output.shape = {kDynamic, classes * classes};
  output.dimension_names = {"", ""};
  graph.outputs = {output};
  return graph;
}

class MarginByBounds : public LabelScore {
 public:
  MarginByBounds(const ScoreOptions& options, const LogitHead& head, const AffineTail& tail)
      : LabelScore(head), norm_(options.norm), term_(rank_term(options)) {
    check_pairs_fit(tail, options.bound);
    NetworkOptions network;
    network.device = head.network->device();
    bounds_ = make_bounds(std::make_shared<const Network>(difference_graph(tail), network),
                          options.bound);
  }

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    const torch::Tensor labels = labels_of(truth, features.size(0), classes());
    const torch::Tensor logits = logits_of(head(), features);
    const torch::Tensor column = labels.clamp_min(0).unsqueeze(1);
    torch::Tensor scores = margins(features, logits, column);
    if (term_.weight > 0) {
      scores = scores + rank_terms(label_ranks(logits).gather(1, column).squeeze(1), term_);
    }
    return label_plain_scores(scores, labels, logits);
  }

  using LabelScore::label_scores;
  torch::Tensor label_scores(const torch::Tensor& features,
                             const torch::Tensor& logits) const override {
    Tensors columns;
    for (int64_t label = 0; label < classes(); ++label) {
      columns.push_back(margins(features, logits, torch::full({features.size(0), 1}, label)));
    }
    const torch::Tensor scores = torch::stack(columns, 1) + rank_terms(label_ranks(logits), term_);
    return scores.masked_fill(logits.isnan().any(1, /*keepdim=*/true),
                              std::numeric_limits<double>::quiet_NaN());
  }

  using Score::region;
  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    const torch::Tensor radii = label_radii(radius, features.size(0), classes());
    const torch::Tensor logits = logits_of(head(), features);
    torch::Tensor members;
    if (term_.weight == 0 && radii.size(1) == 1) {
      members = within(features, logits, radii.squeeze(1));
    } else {
      const torch::Tensor limits =
          margin_limits(radii.expand(logits.sizes()), rank_terms(label_ranks(logits), term_));
      Tensors columns;
      for (int64_t label = 0; label < classes(); ++label) {
        columns.push_back(within(features, logits, limits.select(1, label)).select(1, label));
      }
      members = torch::stack(columns, 1);
    }
    const torch::Tensor unknown = logits.isnan().any(1, /*keepdim=*/true);
    return {answers_of(logits), {}, {}, members.logical_and(~unknown)};
  }

 private:
  // Whether no rival rules out each label on its row's ball: radius [N] float32 → [N, C].
  torch::Tensor stands(const torch::Tensor& features, const torch::Tensor& logits,
                       const torch::Tensor& radius) const {
    const int64_t rows = features.size(0);
    Tensors parts;
    for (int64_t first = 0; first < rows; first += kRowsOfABatch) {
      const int64_t count = std::min(kRowsOfABatch, rows - first);
      const Range range = bounds_->ranges(
          {features.narrow(0, first, count), radius.narrow(0, first, count), norm_, {}})[0];
      const torch::Tensor beaten =
          (range.lower > 0).reshape({count, classes(), classes()}).any(2).to(torch::kCPU);
      parts.push_back(beaten.logical_not());
    }
    return torch::cat(parts).scatter(1, logits.argmax(1, /*keepdim=*/true), true);
  }

  // m(v, k) of one label per row, labels [N, 1] → [N] doubles.
  torch::Tensor margins(const torch::Tensor& features, const torch::Tensor& logits,
                        const torch::Tensor& labels) const {
    return smallest_radius(features.size(0), torch::kCPU, RadiusRange::kFromZero,
                           [&](const torch::Tensor& radius) {
                             return stands(features, logits, radius).gather(1, labels).squeeze(1);
                           });
  }

  // The largest float32 m ≥ 0 with m + term ≤ radius, the sum rounded as it is in the score; a
  // negative number where there is none.
  static torch::Tensor margin_limits(const torch::Tensor& radii, const torch::Tensor& terms) {
    const torch::Tensor radius = radii.flatten(), term = terms.flatten();
    const torch::Tensor beyond =
        smallest_radius(
            radius.size(0), torch::kCPU, RadiusRange::kFromZero,
            [&](const torch::Tensor& m) { return m.to(torch::kDouble) + term > radius; })
            .to(torch::kFloat);
    const torch::Tensor limit = torch::nextafter(beyond, torch::full_like(beyond, -kInfinity));
    return torch::where(radius == kInfinity, radius, limit.to(torch::kDouble)).view(radii.sizes());
  }

  // The labels with m(v, k) ≤ radius, [N] doubles → [N, C].
  torch::Tensor within(const torch::Tensor& features, const torch::Tensor& logits,
                       const torch::Tensor& radius) const {
    torch::Tensor members = torch::zeros(logits.sizes(), torch::kBool);
    if (bounds_->monotone()) {
      const RadiusBelow below = radius_below(radius, RadiusRange::kFromZero);
      members = stands(features, logits, below.radius).logical_and(below.exists.unsqueeze(1));
    } else {
      for (const PathStep& step : path_back(radius, RadiusRange::kFromZero)) {
        const torch::Tensor at = stands(features, logits, step.radius);
        const torch::Tensor joined =
            torch::where(step.within.unsqueeze(1), at.logical_or(members), at.logical_and(members));
        members = torch::where(step.active.unsqueeze(1), joined, members);
      }
    }
    return members.logical_or((radius == kInfinity).unsqueeze(1));
  }

  std::unique_ptr<HeadBounds> bounds_;
  Norm norm_;
  RankTerm term_;
};

}  // namespace

std::unique_ptr<LabelScore> make_margin_by_bounds(const ScoreOptions& options,
                                                  const LogitHead& head, const AffineTail& tail) {
  return std::make_unique<MarginByBounds>(options, head, tail);
}

}  // namespace fcp
