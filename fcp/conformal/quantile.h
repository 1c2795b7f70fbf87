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

#include <cfloat>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
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

// The rank of the calibration score that becomes the radius.
//
//   k = ⌈(1 − α)(n + 1)⌉ = (n + 1) − ⌊α(n + 1)⌋        for n exchangeable calibration scores
//
// The k-th smallest score r gives P(test score ≤ r) ≥ 1 − α, and < 1 − α + 1/(n + 1) without ties.
// k = n + 1 means that n scores are too few for this level: the radius is +∞.
//
// Reference: Vovk, Gammerman, Shafer, Algorithmic Learning in a Random World, 2005.
// Tested by tests/conformal/quantile_test.cc.

// Between 1 and n + 1, exactly, for every level and every n.
inline size_t conformal_rank(const Level& level, size_t n) {
  return n + 1 - level.floor_times(n + 1);
}

// The least number of calibration rows with which the radius can be finite: ⌈1/α⌉ − 1, or the
// largest number there is less one.
inline size_t least_calibration_rows(const Level& level) {
  // The least m with ⌊α·m⌋ ≥ 1, less one, by bisection: it holds at `enough`, not at `too_few`.
  uint64_t too_few = 0, enough = std::numeric_limits<uint64_t>::max();
  while (enough - too_few > 1) {
    const uint64_t middle = too_few + (enough - too_few) / 2;
    (level.floor_times(middle) < 1 ? too_few : enough) = middle;
  }
  return enough - 1;
}

// Sums of weights, as the weighted quantile and its p-value both take them.
//
// The two are dual only if they agree on ties: both compare the share of the mass that is left,
// rounded to the nearest double, with α as a double. Weights such as 0.1, 0.2 and 0.3 are not these
// decimals, and their exact shares lie a rounding error beside the share that was meant.

// 113 bits where the machine has them: sums of doubles of similar size are then exact.
#if LDBL_MANT_DIG < 113 && defined(__SIZEOF_FLOAT128__)
using WeightSum = __float128;
#else
using WeightSum = long double;
#endif

inline double weight_share(WeightSum part, WeightSum total) {
  return static_cast<double>(part / total);
}

// The conformal quantile of scores that change little from one call to the next, as they do from
// step to step of a search: looked for near the last one. One pass counts what is outside a window
// around it, and the few scores inside are selected from; where the quantile has left the window,
// all are. Always exactly conformal_quantile, errors included.
// Tested by tests/conformal/quantile_test.cc.

class FollowingQuantile {
 public:
  explicit FollowingQuantile(const Level& level) : level_(level) {}

  double of(std::span<const double> scores);

 private:
  std::optional<double> near_last(std::span<const double> scores);

  Level level_;
  double last_ = std::numeric_limits<double>::quiet_NaN();
  double window_ = 0;  // to either side
  std::vector<double> inside_;
};

}  // namespace fcp
