#include "fcp/methods/scores/feature_sampled.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/methods/method.h"
#include "fcp/methods/scores/labels.h"
#include "fcp/methods/scores/margin_head.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/search/surrogate_search.h"

namespace fcp {
namespace {

class FeatureSampled : public Score {
 public:
  FeatureSampled(const FeatureSampledOptions& options, const SharedOptions& shared,
                 const std::shared_ptr<const Network>& head)
      : head_(logit_head(head, shared.output)),
        options_(options),
        seed_(shared.seed),
        search_(head_.network, 0,
                {.rate = options.step_rate,
                 .adam = options.adam,
                 .weights = {},
                 .loss = SearchLoss::kCrossEntropy}) {
    if (options.steps < 1)
      fail("feature_sampled needs its number of steps; it was ", options.steps);
    if (options.samples < 1)
      fail("feature_sampled needs at least 1 sample; asked for ", options.samples);
  }

  int64_t classes() const override { return head_.classes; }

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    const torch::Tensor labels = labels_of(truth, features.size(0), classes());
    const torch::Tensor found =
        search_.walk(features, labels.clamp_min(0).unsqueeze(1), options_.steps);
    const torch::Tensor distance = row_norms(found - features.to(found.device()), options_.norm);
    return label_plain_scores(distance.to(torch::kCPU), labels,
                              distance.to(torch::kCPU).unsqueeze(1));
  }

  using Score::region;
  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    const torch::NoGradGuard no_gradients;
    prepare(features);
    const torch::Tensor radii = label_radii(radius, features.size(0), classes());
    const torch::Tensor logits = logits_of(head_, features);
    torch::Tensor members = torch::zeros(logits.sizes(), torch::kBool);
    for (int64_t row = 0; row < features.size(0); ++row) {
      const double* own = radii.data_ptr<double>() + row * radii.size(1);
      for (const double r : std::set<double>(own, own + radii.size(1))) {
        const torch::Tensor hit = labels_hit(features[row], logits[row], r);
        members[row].logical_or_(hit.logical_and(radii[row] == r));
      }
    }
    return {answers_of(logits), {}, {}, members};
  }

 private:
  // The labels predicted on the ball of one feature, [C] bool.
  torch::Tensor labels_hit(const torch::Tensor& feature, const torch::Tensor& logits,
                           double radius) const {
    torch::Tensor hit = torch::zeros({classes()}, torch::kBool);
    if (!(radius >= 0) || logits.isnan().any().item<bool>()) return hit;
    if (std::isinf(radius)) return hit.fill_(true);
    hit[logits.argmax()] = true;
    const torch::Tensor winners =
        moves_.defined() ? winners_by_moves(logits, radius) : winners_by_running(feature, radius);
    return hit.index_fill_(0, winners, true);
  }

  // Label j wins somewhere only if its best beats the worst of the label that leads.
  torch::Tensor winners_by_moves(const torch::Tensor& logits, double radius) const {
    const torch::Tensor best = logits + radius * most_, worst = logits + radius * least_;
    const torch::Tensor able = (best >= worst.max()).nonzero().squeeze(1);
    const torch::Tensor sampled =
        moves_.index_select(0, able) * radius + logits.index_select(0, able).unsqueeze(1);
    return able.index_select(0, sampled.argmax(0));
  }

  torch::Tensor winners_by_running(const torch::Tensor& feature, double radius) const {
    Tensors winners;
    constexpr int64_t kAtOnce = 256;
    for (int64_t first = 0; first < options_.samples; first += kAtOnce) {
      const int64_t count = std::min(kAtOnce, options_.samples - first);
      std::vector<int64_t> shape = feature.sizes().vec();
      shape.insert(shape.begin(), count);
      const torch::Tensor away =
          directions_.narrow(0, first, count).view(shape).to(feature.device());
      winners.push_back(logits_of(head_, feature.unsqueeze(0) + radius * away).argmax(1));
    }
    return torch::cat(winners);
  }

  // The shape of a feature is known only when one comes.
  void prepare(const torch::Tensor& features) const {
    if (features.size(0) == 0) fail("feature_sampled: there are no rows");
    std::call_once(prepared_, [&] {
      directions_ = ball_samples(options_.samples, features[0].numel(), options_.norm, seed_);
      const AffineTail tail = affine_tail(head_, features);
      if (!tail.whole()) return;
      moves_ = torch::mm(tail.weight, directions_.t());  // [C, samples]
      most_ = moves_.amax(1);
      least_ = moves_.amin(1);
    });
  }

  LogitHead head_;
  FeatureSampledOptions options_;
  uint64_t seed_;
  SurrogateSearch search_;
  mutable std::once_flag prepared_;
  mutable torch::Tensor directions_;            // [samples, D]
  mutable torch::Tensor moves_, most_, least_;  // of the logits of a linear head; else undefined
};

}  // namespace

torch::Tensor ball_samples(int64_t count, int64_t dimensions, Norm norm, uint64_t seed) {
  Random random(seed);
  torch::Tensor points = torch::empty({count, dimensions}, torch::kFloat);
  std::vector<double> point(static_cast<size_t>(dimensions));
  float* out = points.data_ptr<float>();
  for (int64_t i = 0; i < count; ++i) {
    double size = 0;
    for (double& x : point) {
      if (norm == Norm::kInf) {
        x = 2 * random.uniform() - 1;
      } else if (norm == Norm::kTwo) {
        x = random.normal();
        size += x * x;
      } else {
        x = -std::log(1 - random.uniform());
        size += x;
        if (random.below(2) == 1) x = -x;
      }
    }
    // A uniform direction, and the radius whose power D is uniform.
    double scale = 1;
    if (norm != Norm::kInf) {
      scale = std::pow(random.uniform(), 1 / static_cast<double>(dimensions)) /
              (norm == Norm::kTwo ? std::sqrt(size) : size);
    }
    for (const double x : point) *out++ = static_cast<float>(x * scale);
  }
  return points;
}

std::vector<Option> FeatureSampledOptions::rows() {
  return {score_option(field::samples, {.name = "samples",
                                        .help = "Samples of the ball",
                                        .least = 1,
                                        .most = kMostInt,
                                        .after = "rank_free"})};
}

std::unique_ptr<Score> make_score(const FeatureSampledOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head) {
  return std::make_unique<FeatureSampled>(options, shared, head);
}

}  // namespace fcp
