#include "fcp/methods/calibrations/weighted.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fcp/base/error.h"
#include "fcp/conformal/p_value.h"
#include "fcp/conformal/quantile.h"

namespace fcp {
namespace {

class Weighted : public Calibration {
 public:
  Weighted(bool paper, const CalibrationScores& rows)
      : paper_(paper), targets_(static_cast<size_t>(rows.targets)), weights_(rows.weights) {
    if (weights_.size() != rows.count()) {
      fail("weighted calibration found ", weights_.size(), " weights for ", rows.count(), " rows");
    }
    for (size_t row = 0; row < weights_.size(); ++row) {
      if (!(weights_[row] >= 0) || std::isinf(weights_[row])) {
        fail("weight of row ", row, " is ", weights_[row],
             "; expected a finite number, not negative");
      }
    }
    for (int64_t side = 0; side < rows.sides; ++side) sides_.emplace_back(side_scores(rows, side));
  }

  torch::Tensor radii(const TestInputs& rows, const Level& level) const override {
    const auto sides = static_cast<int64_t>(sides_.size());
    const Level each = side_level(level, sharing(), paper_);
    check_count(rows, static_cast<size_t>(rows.features.size(0)));
    torch::Tensor result = torch::empty({rows.features.size(0), sides}, torch::kDouble);
    auto at = result.accessor<double, 2>();
    for (size_t i = 0; i < rows.weights.size(); ++i) {
      for (int64_t side = 0; side < sides; ++side) {
        at[static_cast<int64_t>(i)][side] =
            sides_[static_cast<size_t>(side)].quantile(weights_, rows.weights[i], each);
      }
    }
    return result;
  }

  std::vector<double> p_values(const TestInputs& rows,
                               std::span<const double> scores) const override {
    check_count(rows, scores.size() / sides_.size());
    std::vector<double> result(rows.weights.size() * targets_);
    std::vector<double> each(sides_.size());
    for (size_t i = 0; i < rows.weights.size(); ++i) {
      for (size_t side = 0; side < each.size(); ++side) {
        each[side] =
            sides_[side].p_value(weights_, rows.weights[i], scores[i * each.size() + side]);
      }
      join_targets(each, sharing(), paper_, result.data() + i * targets_);
    }
    return result;
  }

 private:
  int64_t sharing() const { return static_cast<int64_t>(sides_.size() / targets_); }

  static void check_count(const TestInputs& rows, size_t count) {
    if (rows.weights.size() != count) {
      fail("weighted calibration needs the likelihood ratio of each row; found ",
           rows.weights.size(), " for ", count, " rows");
    }
  }

  bool paper_;
  size_t targets_;
  std::vector<double> weights_;
  std::vector<WeightedScores> sides_;
};

}  // namespace

WeightedScores::WeightedScores(const std::vector<double>& scores) : order_(scores.size()) {
  for (size_t row = 0; row < scores.size(); ++row) {
    if (std::isnan(scores[row])) fail("score of row ", row, " is NaN; expected a number");
  }
  std::iota(order_.begin(), order_.end(), size_t{0});
  std::stable_sort(order_.begin(), order_.end(),
                   [&](size_t a, size_t b) { return scores[a] < scores[b]; });
  for (const size_t row : order_) sorted_.push_back(scores[row]);
}

std::vector<double> WeightedScores::arrange(std::span<const double> weights) const {
  std::vector<double> arranged(order_.size());
  for (size_t i = 0; i < order_.size(); ++i) arranged[i] = weights[order_[i]];
  return arranged;
}

double WeightedScores::quantile(std::span<const double> weights, double test_weight,
                                const Level& level) const {
  return weighted_quantile_sorted(sorted_, arrange(weights), test_weight, level);
}

double WeightedScores::p_value(std::span<const double> weights, double test_weight,
                               double score) const {
  return weighted_p_value(sorted_, arrange(weights), test_weight, score);
}

double effective_sample_size(std::span<const double> weights) {
  double sum = 0, squares = 0;
  for (const double weight : weights) {
    sum += weight;
    squares += weight * weight;
  }
  return squares > 0 ? sum * sum / squares : 0;
}

std::unique_ptr<Calibration> make_calibration(const WeightedOptions& /*options*/,
                                              const SharedCalibrationOptions& shared,
                                              const CalibrationScores& rows, int64_t /*classes*/) {
  return std::make_unique<Weighted>(shared.paper, rows);
}

}  // namespace fcp
