#include "fcp/methods/scores/feature_margin.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <ATen/Parallel.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/memory.h"
#include "fcp/base/special_numbers.h"
#include "fcp/methods/scores/labels.h"
#include "fcp/methods/scores/margin_head.h"
#include "fcp/methods/scores/radius_search.h"

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

RankTerm rank_term_of(const FeatureMarginOptions& options) {
  return rank_term(options.rank_weight, options.rank_free, FeatureMarginOptions::kName);
}

class MarginByBounds : public LabelScore {
 public:
  MarginByBounds(const FeatureMarginOptions& options, const LogitHead& head, const AffineTail& tail)
      : LabelScore(head, options.allow_empty), norm_(options.norm), term_(rank_term_of(options)) {
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
    return label_plain_scores(with_answer(scores, labels, logits), labels, logits);
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
    members = members_with_answer(members, logits, radii).logical_and(~unknown);
    return {answers_of(logits), {}, {}, members};
  }

 protected:
  torch::Tensor plain_label_scores(const torch::Tensor& features,
                                   const torch::Tensor& logits) const override {
    Tensors columns;
    for (int64_t label = 0; label < classes(); ++label) {
      columns.push_back(margins(features, logits, torch::full({features.size(0), 1}, label)));
    }
    const torch::Tensor scores = torch::stack(columns, 1) + rank_terms(label_ranks(logits), term_);
    return scores.masked_fill(logits.isnan().any(1, /*keepdim=*/true),
                              std::numeric_limits<double>::quiet_NaN());
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

constexpr int64_t kMaxima = 16;      // of one running maximum, for the compiler to make vectors of
constexpr int64_t kRowsAtOnce = 16;  // that share a row of inverse distances while it is in cache

// max_j (z_j − z_k) · inverse_kj over all labels j, k among them.
float margin_of(const float* z, float own, const float* inverse, int64_t classes) {
  std::array<float, kMaxima> largest{};
  int64_t j = 0;
  for (; j + kMaxima <= classes; j += kMaxima) {
    for (int64_t lane = 0; lane < kMaxima; ++lane) {
      const float margin = (z[j + lane] - own) * inverse[j + lane];
      auto& most = largest[static_cast<size_t>(lane)];
      most = margin > most ? margin : most;
    }
  }
  for (; j < classes; ++j) largest[0] = std::max(largest[0], (z[j] - own) * inverse[j]);
  return *std::max_element(largest.begin(), largest.end());
}

class LinearMargin {
 public:
  LinearMargin(const torch::Tensor& weight, Norm norm, const RankTerm& term)
      : classes_(weight.size(0)), inverse_(inverse_distances(weight, norm)), term_(term) {}

  double score(const float* z, int64_t label) const {
    const double margin = margin_of(z, z[label], inverse_row(label), classes_);
    return term_.weight == 0 ? margin
                             : margin + term_.of(rank_of({z, static_cast<size_t>(classes_)},
                                                         static_cast<size_t>(label)));
  }

  // The scores of all labels; one that the label `top` alone brings above its radius may be left at
  // what `top` says, which decides membership just as well because more labels only add to it.
  void scores(const torch::Tensor& logits, const torch::Tensor& radii, torch::Tensor& out) const {
    const int64_t step = radii.size(1) == 1 ? 0 : 1;
    at::parallel_for(0, logits.size(0), kRowsAtOnce, [&](int64_t begin, int64_t end) {
      for (int64_t first = begin; first < end; first += kRowsAtOnce) {
        const int64_t last = std::min(end, first + kRowsAtOnce);
        std::array<int64_t, kRowsAtOnce> top{};
        for (int64_t row = first; row < last; ++row) {
          const float* z = row_of<float>(logits, row);
          top[static_cast<size_t>(row - first)] = std::max_element(z, z + classes_) - z;
        }
        for (int64_t label = 0; label < classes_; ++label) {
          for (int64_t row = first; row < last; ++row) {
            const float* z = row_of<float>(logits, row);
            const int64_t rival = top[static_cast<size_t>(row - first)];
            const double at_least = (z[rival] - z[label]) * inverse_row(label)[rival];
            const bool out_already = at_least > row_of<double>(radii, row)[step * label];
            row_of<double>(out, row)[label] = out_already ? at_least : score(z, label);
          }
        }
      }
    });
  }

 private:
  template <typename T>
  static T* row_of(const torch::Tensor& matrix, int64_t row) {
    return matrix.data_ptr<T>() + row * matrix.size(1);
  }

  const float* inverse_row(int64_t label) const {
    return inverse_.data_ptr<float>() + label * classes_;
  }

  int64_t classes_;
  torch::Tensor inverse_;  // [C, C]
  RankTerm term_;
};

class FeatureMargin : public LabelScore {
 public:
  FeatureMargin(const FeatureMarginOptions& options, const std::shared_ptr<const Network>& head,
                const std::string& output)
      : LabelScore(head, output, options.allow_empty),
        options_(options),
        term_(rank_term_of(options)) {}

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    prepare(features);
    if (deep_) return deep_->score(features, truth);
    const torch::Tensor labels = labels_of(truth, features.size(0), classes());
    const torch::Tensor logits = logits_of(head(), features);
    torch::Tensor scores = torch::empty({features.size(0)}, torch::kDouble);
    for (int64_t row = 0; row < features.size(0); ++row) {
      const int64_t label = std::max<int64_t>(0, labels.data_ptr<int64_t>()[row]);
      scores.data_ptr<double>()[row] =
          linear_->score(logits.data_ptr<float>() + row * classes(), label);
    }
    return label_plain_scores(with_answer(scores, labels, logits), labels, logits);
  }

  using Score::region;
  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    prepare(features);
    if (deep_) return deep_->region(features, radius);
    const torch::Tensor radii = label_radii(radius, features.size(0), classes());
    const torch::Tensor logits = logits_of(head(), features);
    return {answers_of(logits), {}, {}, with_answer(scores_of(logits, radii), logits) <= radii};
  }

 protected:
  torch::Tensor plain_label_scores(const torch::Tensor& features,
                                   const torch::Tensor& logits) const override {
    prepare(features);
    if (deep_) return deep_->label_scores(features, logits);
    return scores_of(logits, torch::full({features.size(0), 1}, kInfinity, torch::kDouble));
  }

 private:
  torch::Tensor scores_of(const torch::Tensor& logits, const torch::Tensor& radii) const {
    torch::Tensor scores = torch::empty(logits.sizes(), torch::kDouble);
    linear_->scores(logits, radii, scores);
    return scores.masked_fill(logits.isnan().any(1, /*keepdim=*/true),
                              std::numeric_limits<double>::quiet_NaN());
  }

  // The shape of a feature is known only when one comes.
  void prepare(const torch::Tensor& features) const {
    if (features.size(0) == 0) fail("feature_margin: there are no rows");
    std::call_once(prepared_, [&] {
      const AffineTail tail = affine_tail(head(), features);
      if (tail.whole()) {
        linear_.emplace(tail.weight, options_.norm, term_);
      } else {
        deep_ = make_margin_by_bounds(options_, head(), tail);
      }
    });
  }

  FeatureMarginOptions options_;
  RankTerm term_;
  mutable std::once_flag prepared_;
  mutable std::optional<LinearMargin> linear_;  // one of the two
  mutable std::unique_ptr<LabelScore> deep_;
};

}  // namespace

torch::Tensor inverse_distances(const torch::Tensor& weight, Norm norm) {
  const double dual = norm == Norm::kInf   ? 1
                      : norm == Norm::kTwo ? 2
                                           : std::numeric_limits<double>::infinity();
  const int64_t classes = weight.size(0);
  const torch::Tensor pairs = torch::triu_indices(classes, classes, 1, torch::kLong);
  const torch::Tensor inverse = torch::pdist(weight, dual).clamp_min(0x1p-126).reciprocal();
  torch::Tensor above = torch::zeros({classes, classes}, torch::kFloat);
  above.index_put_({pairs[0], pairs[1]}, inverse);
  return above + above.t();
}

std::unique_ptr<LabelScore> make_margin_by_bounds(const FeatureMarginOptions& options,
                                                  const LogitHead& head, const AffineTail& tail) {
  return std::make_unique<MarginByBounds>(options, head, tail);
}

std::unique_ptr<Score> make_score(const FeatureMarginOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head) {
  return std::make_unique<FeatureMargin>(options, head, shared.output);
}

}  // namespace fcp
