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
// Reference: see jumper.h. Tested by tests/monitoring/martingale_test.cc.
#pragma once

#include <vector>

#include "fcp/monitoring/jumper.h"

namespace fcp {

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

}  // namespace fcp
