// The conformal transducer: from scores in the order of time to p-values that are independent and
// uniform as long as the scores are exchangeable.
//
//   p_t = (#{i : s_i > s_t} + U_t (1 + #{i : s_i = s_t})) / (m + 1),   U_t uniform in (0, 1]
//
// over the m scores before: those of calibration and all that came since. Unlike the p-values of a
// fixed calibration set, which share its luck for ever, these are exactly uniform and independent,
// ties included, which is what a martingale needs. Randomness follows from the seed.
//
// Memory is bounded: after `most` scores the bag is emptied and begins anew, which keeps p-values
// exact, because scores that are exchangeable stay so among themselves.
//
// Reference: Vovk, Gammerman, Shafer, Algorithmic Learning in a Random World, 2nd ed. 2022, ch. 8.
// Cost: that of RankedScores. Tested by tests/monitoring/martingale_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fcp/base/random.h"
#include "fcp/monitoring/ranked_scores.h"

namespace fcp {

class Transducer {
 public:
  // `reference`: scores that are there before the first, in any order; may be empty.
  explicit Transducer(std::vector<double> reference, uint64_t seed, size_t most = 1'000'000);

  // The p-value of the next score, in (0, 1]. A NaN is an Error.
  double next(double score);

 private:
  RankedScores bag_;
  Random random_;
  size_t most_;
};

}  // namespace fcp
