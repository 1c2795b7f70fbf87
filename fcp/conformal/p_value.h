// The conformal p-value: how usual a test score is among the calibration scores.
//
//   p(s) = (1 + #{i : s_i ≥ s}) / (n + 1)
//
// Under exchangeability P(p ≤ α) ≤ α. It is the dual of the quantile, ties and infinities included:
//
//   s ≤ conformal_quantile(scores, α)   ⟺   p(s) > α
//
// which holds exactly because both sides compare integers with ⌊α(n + 1)⌋.
// Cost: one binary search, O(log n). Tested by tests/conformal/p_value_test.cc.
#pragma once

#include <cstddef>
#include <span>

#include "fcp/level.h"

namespace fcp {

struct PValue {
  size_t numerator = 1;    // 1 + #{i : s_i ≥ s}
  size_t denominator = 1;  // n + 1

  double value() const { return static_cast<double>(numerator) / static_cast<double>(denominator); }

  // p > α, exactly: the test point belongs to the region at this level.
  bool exceeds(const Level& level) const { return numerator > level.floor_times(denominator); }
};

// Of calibration scores in ascending order, without NaN. A NaN test score is an error.
PValue conformal_p_value(std::span<const double> sorted, double score);

// The weighted form, dual to weighted_quantile_sorted in the same way:
//
//   p(s) = (w_test + Σ_{i: s_i ≥ s} w_i) / (w_test + Σ_i w_i),   1 where all weights are zero
//
// rounded to the nearest double, which is what weighted_quantile_sorted compares with α, so that
// s ≤ quantile ⟺ p(s) > level.value(). weights[i] belongs to sorted[i]; they are finite and not
// negative. O(n).
double weighted_p_value(std::span<const double> sorted, std::span<const double> weights,
                        double test_weight, double score);

}  // namespace fcp
