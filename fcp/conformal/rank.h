// The rank of the calibration score that becomes the radius.
//
//   k = ⌈(1 − α)(n + 1)⌉ = (n + 1) − ⌊α(n + 1)⌋        for n exchangeable calibration scores
//
// The k-th smallest score r gives P(test score ≤ r) ≥ 1 − α, and < 1 − α + 1/(n + 1) without ties.
// k = n + 1 means that n scores are too few for this level: the radius is +∞.
//
// Reference: Vovk, Gammerman, Shafer, Algorithmic Learning in a Random World, 2005.
// Tested by tests/conformal/rank_test.cc.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "fcp/conformal/level.h"

namespace fcp {

// Between 1 and n + 1, exactly, for every level and every n.
inline size_t conformal_rank(const Level& level, size_t n) {
  return n + 1 - level.floor_times(n + 1);
}

// The least number of calibration rows with which the radius can be finite: ⌈1/α⌉ − 1.
inline size_t least_calibration_rows(const Level& level) {
  // From the rounded 1/α to the exact number: the least m with ⌊α·m⌋ ≥ 1, less one.
  const double guess = std::floor(1 / level.value()) - 1;
  auto m = static_cast<uint64_t>(guess > 1 ? guess : 1);
  while (level.floor_times(m) < 1) ++m;
  return m - 1;
}

}  // namespace fcp
