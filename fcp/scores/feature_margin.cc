#include "fcp/scores/feature_margin.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

#include <ATen/Parallel.h>

#include "fcp/base/error.h"
#include "fcp/scores/labels.h"
#include "fcp/scores/margin_bounds.h"
#include "fcp/scores/margin_head.h"

namespace fcp {
namespace {

constexpr int64_t kLanes = 16;       // of one running maximum, for the compiler to make vectors of
constexpr int64_t kRowsAtOnce = 16;  // that share a row of inverse distances while it is in cache

// max_j (z_j − z_k) · inverse_kj over all labels j, k among them.
float margin_of(const float* z, float own, const float* inverse, int64_t classes) {
  std::array<float, kLanes> largest{};
  int64_t j = 0;
  for (; j + kLanes <= classes; j += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const float margin = (z[j + lane] - own) * inverse[j + lane];
      auto& most = largest[static_cast<size_t>(lane)];
      most = margin > most ? margin : most;
    }
  }
  for (; j < classes; ++j) largest[0] = std::max(largest[0], (z[j] - own) * inverse[j]);
  return *std::max_element(largest.begin(), largest.end());
}

int64_t rank_of(const float* z, int64_t label, int64_t classes) {
  int64_t before = 0;
  for (int64_t j = 0; j < classes; ++j) before += z[j] > z[label];
  for (int64_t j = 0; j < label; ++j) before += z[j] == z[label];
  return before + 1;
}

class LinearMargin {
 public:
  LinearMargin(const torch::Tensor& weight, Norm norm, const RankTerm& term)
      : classes_(weight.size(0)), inverse_(inverse_distances(weight, norm)), term_(term) {}

  double score(const float* z, int64_t label) const {
    const double margin = margin_of(z, z[label], inverse_row(label), classes_);
    return term_.weight == 0 ? margin : margin + term_.of(rank_of(z, label, classes_));
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
  FeatureMargin(const ScoreOptions& options, const std::shared_ptr<const Network>& head)
      : LabelScore(options, head), options_(options), term_(rank_term(options)) {}

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
    return label_plain_scores(scores, labels, logits);
  }

  using Score::region;
  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    prepare(features);
    if (deep_) return deep_->region(features, radius);
    const torch::Tensor radii = label_radii(radius, features.size(0), classes());
    const torch::Tensor logits = logits_of(head(), features);
    return {answers_of(logits), {}, {}, scores_of(logits, radii) <= radii};
  }

  using LabelScore::label_scores;
  torch::Tensor label_scores(const torch::Tensor& features,
                             const torch::Tensor& logits) const override {
    prepare(features);
    if (deep_) return deep_->label_scores(features, logits);
    const double infinity = std::numeric_limits<double>::infinity();
    return scores_of(logits, torch::full({features.size(0), 1}, infinity, torch::kDouble));
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

  ScoreOptions options_;
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

std::unique_ptr<Score> make_feature_margin(const ScoreOptions& options,
                                           std::shared_ptr<const Network> head) {
  return std::make_unique<FeatureMargin>(options, head);
}

}  // namespace fcp
