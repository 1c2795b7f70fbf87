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
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fcp/monitoring/saved_state.h"

namespace fcp {

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

}  // namespace fcp
