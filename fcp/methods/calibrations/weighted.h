// Calibration for rows of another distribution of x (covariate shift): each calibration row counts
// by its likelihood ratio w(x) = dQ/dP, where P made the calibration rows and Q makes the new ones.
//
//   radius(x) = the weighted conformal quantile of the scores, with w(x) of the new row at +∞
//
// If the ratio is right up to a factor, P(y ∈ region) ≥ 1 − α under Q, whatever the shift. The
// price is precision: the scores are worth (Σ w)² / Σ w² unweighted ones.
//
// Reference: Tibshirani, Barber, Candès, Ramdas, Conformal Prediction Under Covariate Shift, 2019.
// Tested by tests/methods/calibrations/calibration_test.cc.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "fcp/methods/calibrations/calibration.h"

namespace fcp {

struct WeightedOptions {
  static constexpr char kName[] = "weighted";

  bool operator==(const WeightedOptions&) const = default;
};

std::unique_ptr<Calibration> make_calibration(const WeightedOptions& options,
                                              const SharedCalibrationOptions& shared,
                                              const CalibrationScores& rows, int64_t classes);

// (Σ w)² / Σ w²; 0 where all weights are zero.
double effective_sample_size(std::span<const double> weights);

// Scores sorted once, to be asked with weights that are in the order the scores came in.
class WeightedScores {
 public:
  explicit WeightedScores(const std::vector<double>& scores);

  double quantile(std::span<const double> weights, double test_weight, const Level& level) const;
  double p_value(std::span<const double> weights, double test_weight, double score) const;

 private:
  std::vector<double> arrange(std::span<const double> weights) const;

  std::vector<size_t> order_;
  std::vector<double> sorted_;
};

}  // namespace fcp
