#include "fcp/monitoring/coverage_alarm.h"

#include "fcp/base/error.h"
#include "fcp/conformal/rank.h"
#include "fcp/evaluate/measures/beta.h"

namespace fcp {

CoverageAlarm::CoverageAlarm(double allowed) : allowed_(allowed) {
  if (!(allowed > 0 && allowed < 1)) {
    fail("found the allowed miss rate ", allowed, ", expected a number in (0, 1)");
  }
  for (const double step : {0.01, 0.03, 0.1, 0.25, 0.6}) {
    const double rate = allowed + (1 - allowed) * step;
    if_missed_.push_back(rate / allowed);
    if_covered_.push_back((1 - rate) / (1 - allowed));
  }
  for (const double rate : kJumpRates) jumpers_.emplace_back(if_missed_.size(), rate);
}

void CoverageAlarm::step(bool covered) {
  for (Jumper& jumper : jumpers_) jumper.step(covered ? if_covered_ : if_missed_);
}

void CoverageAlarm::exchange(SavedState& state) {
  for (Jumper& jumper : jumpers_) jumper.exchange(state);
}

std::optional<double> allowed_miss_rate(const Level& level, size_t calibration_rows, double delta) {
  const size_t rank = conformal_rank(level, calibration_rows);
  if (rank > calibration_rows) return std::nullopt;
  const auto k = static_cast<double>(rank), n = static_cast<double>(calibration_rows);
  return 1 - beta_quantile(delta, k, n + 1 - k);
}

}  // namespace fcp
