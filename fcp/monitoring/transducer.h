// The conformal transducer: from scores in the order of time to p-values that are independent and
// uniform as long as the scores are exchangeable.
//
//   p_t = (#{i ∈ B : s_i > s_t} + U_t (1 + #{i ∈ B : s_i = s_t})) / (|B| + 1)
//
// with U_t uniform in (0, 1], over the bag B of scores before: those of calibration and those that
// came since. Unlike the p-values of a fixed calibration set, which share its luck for ever, these
// are exactly uniform and independent, ties included, which is what a martingale needs. Randomness
// follows from the seed.
//
// Memory is bounded: a bag that has more than `most` scores, the newest included, loses one of
// them, each with the same probability. That keeps p-values exact. Proof: which scores are in the
// bag is decided by coins and never by their values, so that, given the values of the bag with s_t
// as a set without order, and given all later scores, s_t is equally likely to be each of them, and
// p_t is uniform. The score that is lost is drawn from that set whichever of them is s_t, so that
// all later p-values are functions of the set, of later scores and of coins: p_t is independent of
// all that follow it, for each t, and hence all of them are independent. (To lose the oldest, as a
// window does, or the newest more often, as a sample of all rows so far does, would not do: what is
// left then tells which was the newest.)
//
// Of the scores of k rows ago a share of about exp(−k / most) is left, so that a change that takes
// much longer than `most` rows goes unnoticed here; coverage, which is held against calibration
// itself, does not forget.
//
// Reference: Vovk, Gammerman, Shafer, Algorithmic Learning in a Random World, 2nd ed. 2022, ch. 8
// (with a bag of all scores). Cost: that of RankedScores.
// Tested by tests/monitoring/transducer_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fcp/base/random.h"
#include "fcp/monitoring/ranked_scores.h"
#include "fcp/monitoring/saved_state.h"

namespace fcp {

class Transducer {
 public:
  // `reference`: scores that are there before the first, in any order; may be empty, and where it
  // has more than `most`, the bag may be as large.
  Transducer(std::vector<double> reference, uint64_t seed, size_t most);

  // The p-value of the next score, in (0, 1]. A NaN is an Error.
  double next(double score);

  void exchange(SavedState& state);

 private:
  uint64_t toss();                      // 64 random bits
  uint64_t toss_below(uint64_t limit);  // each with the same probability

  RankedScores bag_;
  uint64_t seed_;
  Random random_;
  uint64_t tossed_ = 0;
  size_t most_;
};

}  // namespace fcp
