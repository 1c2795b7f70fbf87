// The conformal quantile: from calibration scores to a radius.
//
// It is an order statistic, never an interpolation: the score of rank k = conformal_rank(α, n), and
// +∞ where k > n. Scores may be ±∞; a NaN score is an error that names its row (counted from 0).
//
// The weighted form serves calibration data that resembles the test point unevenly (covariate
// shift, localized calibration):
//
//   r = min { r : Σ_{i: s_i ≤ r} w_i ≥ (1 − α)(Σ_i w_i + w_test) },   +∞ where there is none
//
// The test point's own mass stands at +∞. With equal weights it is the plain quantile, exactly.
//
// Reference: Tibshirani, Barber, Candès, Ramdas, Conformal Prediction Under Covariate Shift, 2019.
// Tested by tests/conformal/quantile_test.cc.
#pragma once

#include <span>
#include <vector>

#include "fcp/level.h"

namespace fcp {

// An Error that names the first row whose score is NaN.
void check_scores(std::span<const double> scores);

// By selection on a copy: O(n) time and memory.
double conformal_quantile(std::span<const double> scores, const Level& level);

// Of scores in ascending order, without NaN, as sorted_scores returns them. O(1).
double conformal_quantile_sorted(std::span<const double> sorted, const Level& level);

// The scores in ascending order; a NaN is an error. What a calibrated predictor keeps, so that any
// level can be asked of it later. A list that is moved in is sorted where it is.
std::vector<double> sorted_scores(std::vector<double> scores);

// Of scores in ascending order, weights[i] belonging to sorted[i]. Weights are finite and not
// negative; they need not sum to one. All weights zero: +∞. O(n): in localized calibration the
// scores stay and each test point brings its own weights.
double weighted_quantile_sorted(std::span<const double> sorted, std::span<const double> weights,
                                double test_weight, const Level& level);

}  // namespace fcp
