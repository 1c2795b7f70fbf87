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

#include <cstddef>
#include <cstdint>
#include <limits>

#include "fcp/level.h"

namespace fcp {

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

}  // namespace fcp
