#include "fcp/evaluate/measures/distribution_evaluation.h"

#include <algorithm>
#include <cmath>

#include "fcp/base/error.h"

namespace fcp {

double crps_of_quantiles(std::span<const double> quantiles, double truth) {
  const auto count = static_cast<double>(quantiles.size());
  double sum = 0;
  for (size_t i = 0; i < quantiles.size(); ++i) {
    const double level = static_cast<double>(i + 1) / (count + 1);
    const double above = truth - quantiles[i];
    sum += above >= 0 ? level * above : (level - 1) * above;
  }
  return 2 * sum / count;
}

void DistributionEvaluator::add(std::span<const double> quantiles, double truth, double place) {
  if (quantiles.size() != levels_) {
    fail("found ", quantiles.size(), " quantiles of a row, expected ", levels_);
  }
  if (!(place >= 0 && place <= 1) || !std::isfinite(truth)) {
    fail("row ", rows_, ": the place ", place, " of the truth ", truth,
         "; expected 0 to 1 and a finite truth");
  }
  ++rows_;
  crps_ += crps_of_quantiles(quantiles, truth);
  const auto bin = static_cast<size_t>(place * static_cast<double>(kPitBins));
  ++pit_[std::min(bin, kPitBins - 1)];
  if (truths_.size() == kThresholdRows) return;
  truths_.push_back(truth);
  quantiles_.insert(quantiles_.end(), quantiles.begin(), quantiles.end());
}

std::vector<ThresholdCalibration> DistributionEvaluator::thresholds() const {
  std::vector<double> sorted = truths_;
  std::sort(sorted.begin(), sorted.end());
  std::vector<ThresholdCalibration> found;
  const auto rows = static_cast<double>(truths_.size());
  for (const size_t quarter : {1, 2, 3}) {
    ThresholdCalibration one{.threshold = sorted[(sorted.size() - 1) * quarter / 4]};
    for (size_t row = 0; row < truths_.size(); ++row) {
      one.observed += truths_[row] > one.threshold ? 1 / rows : 0;
      const auto first = quantiles_.begin() + static_cast<std::ptrdiff_t>(row * levels_);
      const auto above = std::count_if(first, first + static_cast<std::ptrdiff_t>(levels_),
                                       [&](double q) { return q > one.threshold; });
      // Between two neighbouring quantiles, whose levels differ by 1 / (Q + 1).
      one.predicted += (static_cast<double>(above) + 0.5) / static_cast<double>(levels_ + 1) / rows;
    }
    found.push_back(one);
  }
  return found;
}

DistributionEvaluation DistributionEvaluator::finish(size_t calibration_rows) const {
  if (rows_ == 0) fail("distributions of no rows cannot be evaluated");
  const auto rows = static_cast<double>(rows_);
  const auto calibrated = static_cast<double>(calibration_rows);
  DistributionEvaluation result{.rows = rows_, .crps = crps_ / rows, .pit = pit_};
  constexpr double kShare = 1.0 / kPitBins, kDeviations = 1.96;
  // Of a beta-binomial count with a + b = n + 1.
  const double deviation =
      std::sqrt(rows * kShare * (1 - kShare) * (calibrated + 1 + rows) / (calibrated + 2));
  result.pit_low = std::max(0.0, rows * kShare - kDeviations * deviation);
  result.pit_high = std::min(rows, rows * kShare + kDeviations * deviation);
  result.thresholds = thresholds();
  return result;
}

}  // namespace fcp
