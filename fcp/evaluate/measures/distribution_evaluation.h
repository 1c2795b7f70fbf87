// How good predictive distributions are on rows whose truth is known.
//
//   CRPS     ∫ (F(t) − [y ≤ t])² dt, the mean absolute error of a distribution, in the unit of y:
//            twice the mean pinball loss over the quantiles 1/(Q + 1), …, Q/(Q + 1)
//   PIT      F(y), drawn between its bounds: uniform where the distributions are calibrated. Ten
//            counts, and between which a count lies nineteen times in twenty where they are:
//            beta-binomial, for the n calibration rows are the same for all
//   thresholds   how probable it was to exceed a number, the mean over rows, and how often it was:
//            at the quartiles of the truth, on the first 5,000 rows
//
// Reference: Gneiting, Raftery, Strictly Proper Scoring Rules, JASA 2007, section 4.2; Gneiting,
// Balabdaoui, Raftery, Probabilistic forecasts, calibration and sharpness, JRSS B 2007.
// Tested by tests/evaluate/measures/distribution_evaluation_test.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace fcp {

inline constexpr size_t kPitBins = 10;
inline constexpr size_t kThresholdRows = 5000;

struct ThresholdCalibration {
  double threshold = 0;
  double predicted = 0;  // the mean probability to exceed it
  double observed = 0;   // the share of rows that did
};

struct DistributionEvaluation {
  size_t rows = 0;
  double crps = 0;
  std::array<size_t, kPitBins> pit{};
  double pit_low = 0, pit_high = 0;  // counts between which a bin lies with 95 %
  std::vector<ThresholdCalibration> thresholds{};
};

// Twice the mean pinball loss of ascending quantiles at even levels. +∞ where one is infinite.
double crps_of_quantiles(std::span<const double> quantiles, double truth);

class DistributionEvaluator {
 public:
  // Of `levels` quantiles a row.
  explicit DistributionEvaluator(size_t levels) : levels_(levels) {}

  // A row: its quantiles, its truth, and its place in the distribution, in [0, 1].
  void add(std::span<const double> quantiles, double truth, double place);

  // With so many calibration rows. At least one row is required.
  DistributionEvaluation finish(size_t calibration_rows) const;

 private:
  std::vector<ThresholdCalibration> thresholds() const;

  size_t levels_;
  size_t rows_ = 0;
  double crps_ = 0;
  std::array<size_t, kPitBins> pit_{};
  std::vector<double> truths_;     // of the first rows
  std::vector<double> quantiles_;  // [truths × levels]
};

}  // namespace fcp
