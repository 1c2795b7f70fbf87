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
// Reference: jumper.h; Waudby-Smith, Ramdas, Estimating means of bounded random variables by
// betting, 2024. Tested by tests/monitoring/coverage_alarm_test.cc.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "fcp/level.h"
#include "fcp/monitoring/jumper.h"

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

}  // namespace fcp
