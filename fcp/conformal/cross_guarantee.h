// What CV+ promises: n rows in K folds of equal size, each row judged by a predictor that was
// trained without its fold (fcp/methods/scores/cross.h).
//
//   P(y ∈ interval) ≥ 1 − 2α − min( 2 (1 − 1/K) / (n/K + 1), (1 − K/n) / (K + 1) )
//
// for exchangeable rows and a training that treats its rows alike. K = n is jackknife+: 1 − 2α.
// Reference: Barber, Candès, Ramdas, Tibshirani, Predictive inference with the jackknife+, 2021,
// Theorem 4. Tested by tests/conformal/cross_guarantee_test.cc.
#pragma once

#include <algorithm>
#include <cstddef>

#include "fcp/level.h"

namespace fcp {

// Not below 0; n is a multiple of the folds, which are at least 2.
inline double cross_guarantee(const Level& level, size_t rows, size_t folds) {
  const auto n = static_cast<double>(rows), k = static_cast<double>(folds);
  const double few_folds = 2 * (1 - 1 / k) / (n / k + 1);
  const double small_folds = (1 - k / n) / (k + 1);
  return std::max(0.0, 1 - 2 * level.value() - std::min(few_folds, small_folds));
}

}  // namespace fcp
