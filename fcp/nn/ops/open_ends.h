// Ends of ranges that are not numbers, as ∞ − ∞ and 0 · ∞ leave them behind, say nothing: the range
// is open there. For operators that would otherwise make a number of them.
#pragma once

#include "fcp/base/infinity.h"
#include "fcp/nn/ops/curve.h"

namespace fcp {

inline Range open_ends(const Range& range) {
  if (!range.lower.is_floating_point() || range.lower.is_same(range.upper)) return range;
  return {range.lower.masked_fill(range.lower.isnan(), -kInfinity),
          range.upper.masked_fill(range.upper.isnan(), kInfinity)};
}

}  // namespace fcp
