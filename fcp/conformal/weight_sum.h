// Sums of weights, as the weighted quantile and its p-value both take them.
//
// The two are dual only if they agree on ties: both compare the share of the mass that is left,
// rounded to the nearest double, with α as a double. Weights such as 0.1, 0.2 and 0.3 are not these
// decimals, and their exact shares lie a rounding error beside the share that was meant.
#pragma once

#include <cfloat>

namespace fcp {

// 113 bits where the machine has them: sums of doubles of similar size are then exact.
#if LDBL_MANT_DIG < 113 && defined(__SIZEOF_FLOAT128__)
using WeightSum = __float128;
#else
using WeightSum = long double;
#endif

inline double weight_share(WeightSum part, WeightSum total) {
  return static_cast<double>(part / total);
}

}  // namespace fcp
