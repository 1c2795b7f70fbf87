// Whether regions miss the truth more often than they may, watched row by row.
//
// The hypothesis: given the past, each row is missed with probability at most a. Bets on larger
// rates q are likelihood ratios, whose mean under the hypothesis is at most 1, whether the rate
// stands still or moves below a:
//
//   factor(q) = q / a where the row is missed, (1 − q) / (1 − a) where it is covered
//
// A Jumper deals the money, so that a drop that begins late is noticed too. The rate a that a
// predictor calibrated on n rows may have is not α: by the luck of calibration its coverage follows
// Beta(k, n + 1 − k), and allowed_miss_rate takes that law's quantile, so that the alarm means
// that something has changed since calibration and not that calibration was unlucky.
//
// Reference: martingale.h; Waudby-Smith, Ramdas, Estimating means of bounded random variables by
// betting, 2024. Tested by tests/monitoring/coverage_alarm_test.cc.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "fcp/interval.h"
#include "fcp/level.h"
#include "fcp/monitoring/martingale.h"

namespace fcp {

class CoverageAlarm {
 public:
  // 0 < a < 1.
  explicit CoverageAlarm(double allowed_miss_rate);

  void step(bool covered);
  double log_capital() const { return log_mean_capital(jumpers_); }
  double allowed_miss_rate() const { return allowed_; }

  void exchange(SavedState& state);

 private:
  double allowed_;
  std::vector<double> if_missed_, if_covered_;
  std::vector<Jumper> jumpers_;
};

// The miss rate that the predictor does not exceed with probability 1 − δ over its calibration.
// None where n is too small for the level: such regions never miss.
std::optional<double> allowed_miss_rate(const Level& level, size_t calibration_rows, double delta);

// A confidence interval of a rate that may be looked at after every row.
//
// For rows that are hit independently with a constant probability θ, the mixture of likelihood
// ratios over the Jeffreys law,
//
//   M_t(θ) = B(S + ½, F + ½) / B(½, ½) / (θ^S (1 − θ)^F),   S hits, F misses,
//
// is a martingale at the true θ, hence by Ville P(θ ∉ {θ : M_t(θ) < 1/δ} for some t) ≤ δ: the
// interval holds at all times at once, also at the time at which someone decides to stop. It is
// wider than an interval for one fixed time by a factor of about √(ln t) in the tails.
//
// Where the rate changes with time this is an interval of no one number; the tests of coverage
// do not rest on it.
//
// References: Ville 1939; Robbins, Statistical methods related to the law of the iterated
// logarithm, 1970. O(1) per row, a bisection per interval.
// Tested by tests/monitoring/coverage_alarm_test.cc.

// Of `hits` among `rows`; 0 < delta < 1. [0, 1] without rows.
Interval rate_sequence(size_t hits, size_t rows, double delta);

// The periods of a timeline: years, months, days or hours of rows with times, or so many rows each.
// Tested by tests/monitoring/coverage_alarm_test.cc.

// The label of each row's period, of times as in fcp/base/text_table.h. `unit`: year, month, day or
// hour, of times that are dates.
std::vector<std::string> calendar_periods(const std::vector<std::string>& times,
                                          const std::string& unit);

// The label of row `row` (from 0) where periods have `every` rows: "rows 0–999"; with times, the
// time of the period's first row.
std::string counted_period(size_t row, size_t every, const std::vector<std::string>& times);

}  // namespace fcp
