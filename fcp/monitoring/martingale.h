// The conformal test martingale: a capital that stays small while p-values are independent and
// uniform, and grows when they are not.
//
// Two families of bets, each fair for uniform p:
//
//   slope    1 + ε (2p − 1)           scores have become larger (small p) or smaller
//   spread   1 + ε (2 |2p − 1| − 1)   scores have become more, or less, spread out
//
// with ε ∈ {−1, −1/2, 0, 1/2, 1}, dealt by Jumpers of several rates; the capital is the mean over
// all of them. P(capital ever reaches 1/ε) ≤ ε over all time.
//
// What it tests is exchangeability: a mere dependence from row to row (weather, time of day) is a
// departure from it too, though a harmless one for long-run coverage.
//
// Reference: see martingale.h. Tested by tests/monitoring/martingale_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fcp/base/random.h"
#include "fcp/monitoring/adaptive_level.h"
#include "fcp/monitoring/saved_state.h"

namespace fcp {

// A gambler against "nothing has changed": whoever multiplies money by bets that are fair as long
// as nothing has changed, stays poor, and grows rich soon after a change.
//
// Each round brings one factor per bet; under the hypothesis the mean of each factor, given the
// past, is at most 1. The money C on the bets moves before each round: a share J is dealt anew to
// all bets equally, so that the gambler can change its mind (the Simple Jumper).
//
//   C_b ← ((1 − J) C_b + J · mean(C)) · factor_b
//
// Not all money is on the table from the beginning: in round t an amount 1 / (t (t + 1)) is laid,
// and 1 / (t + 1) is still in the purse. So a change after T quiet rounds is met by fresh money,
// and is noticed about 2 ln T / (growth per round) later than one at the start, where the plain
// jumper would have lost too much to come back.
//
// The capital (purse and table) starts at 1 and is a non-negative supermartingale, hence by Ville
//
//   P(capital ever reaches 1/ε) ≤ ε.
//
// References: Vovk, Petej, Nouretdinov, Ahlberg, Carlsson, Gammerman, Retrain or not retrain:
// conformal test martingales for change-point detection, 2021 (the jumper); Shin, Ramdas, Rinaldo,
// E-detectors: a nonparametric framework for sequential change detection, 2023 (later starts).
// Cost: O(bets) a round. Tested by tests/monitoring/martingale_test.cc.

class Jumper {
 public:
  // bets ≥ 1; 0 < rate ≤ 1 is J.
  Jumper(size_t bets, double rate);

  // Factors are finite and not negative, one per bet.
  void step(std::span<const double> factors);

  double log_capital() const;

  void exchange(SavedState& state);

 private:
  std::vector<double> table_;  // times exp(scale_)
  double scale_ = 0;
  double rate_;
  double rounds_ = 0;
};

// The mean of several jumpers, which is such a capital too, on a logarithmic scale.
double log_mean_capital(std::span<const Jumper> jumpers);

// ln of the mean of exp, without overflow.
double log_mean_exp(std::span<const double> logs);

// The rates J over which the tests of this module take their mean: from patient to quick.
inline constexpr double kJumpRates[] = {1e-4, 1e-3, 1e-2};

class Martingale {
 public:
  Martingale();

  // p in [0, 1].
  void step(double p_value);
  double log_capital() const { return log_mean_capital(jumpers_); }

  void exchange(SavedState& state);

 private:
  std::vector<Jumper> jumpers_;  // of slope, then of spread
};

// When a capital crossed its threshold, and when it began to rise.
class CapitalWatch {
 public:
  // ε: the chance of a false alarm over all time.
  explicit CapitalWatch(double false_alarms);

  // Whether the capital crosses for the first time at this row.
  bool see(size_t row, double log_capital);

  bool crossed() const { return crossed_; }
  size_t row() const { return row_; }      // where it crossed
  size_t since() const { return since_; }  // where it had last been lowest before
  double log_threshold() const { return log_threshold_; }

  void exchange(SavedState& state);

 private:
  double log_threshold_;
  double lowest_ = 0;
  size_t since_ = 0;
  size_t row_ = 0;
  bool crossed_ = false;
};

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
// Tested by tests/monitoring/martingale_test.cc.

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
