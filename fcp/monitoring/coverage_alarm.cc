#include "fcp/monitoring/coverage_alarm.h"

#include <cmath>

#include "fcp/base/error.h"
#include "fcp/base/text_table.h"
#include "fcp/conformal/quantile.h"
#include "fcp/evaluate/measures/coverage_law.h"

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

namespace {

double log_beta(double a, double b) { return std::lgamma(a) + std::lgamma(b) - std::lgamma(a + b); }

// S ln θ + F ln(1 − θ), where 0 ln 0 = 0.
double log_likelihood(double hits, double misses, double rate) {
  return (hits > 0 ? hits * std::log(rate) : 0) + (misses > 0 ? misses * std::log1p(-rate) : 0);
}

// The place between `inside` and `outside` at which the likelihood falls to `least`.
double crossing(double hits, double misses, double least, double inside, double outside) {
  for (int i = 0; i < 100; ++i) {
    const double middle = (inside + outside) / 2;
    (log_likelihood(hits, misses, middle) > least ? inside : outside) = middle;
  }
  return outside;
}

}  // namespace

Interval rate_sequence(size_t hits, size_t rows, double delta) {
  if (hits > rows || !(delta > 0 && delta < 1)) {
    fail("found ", hits, " hits of ", rows, " rows at delta ", delta);
  }
  if (rows == 0) return {0, 1};
  const auto s = static_cast<double>(hits), f = static_cast<double>(rows - hits);
  const double least = log_beta(s + 0.5, f + 0.5) - log_beta(0.5, 0.5) + std::log(delta);
  const double middle = s / (s + f);
  return {hits == 0 ? 0 : crossing(s, f, least, middle, 0),
          hits == rows ? 1 : crossing(s, f, least, middle, 1)};
}

namespace {

// As many characters as the unit has of 2026-11-16T05.
size_t unit_width(const std::string& unit) {
  if (unit == "year") return 4;
  if (unit == "month") return 7;
  if (unit == "day") return 10;
  if (unit == "hour") return 13;
  fail_option("period", "found '", unit, "', expected year, month, day or hour");
}

}  // namespace

std::vector<std::string> calendar_periods(const std::vector<std::string>& times,
                                          const std::string& unit) {
  const size_t width = unit_width(unit);
  std::vector<std::string> periods;
  for (size_t row = 0; row < times.size(); ++row) {
    if (!is_date(times[row]) || times[row].size() < width) {
      fail_time(row, times[row], concat("a date that tells the ", unit));
    }
    periods.push_back(times[row].substr(0, width));
  }
  return periods;
}

std::string counted_period(size_t row, size_t every, const std::vector<std::string>& times) {
  const size_t first = row / every * every;
  return times.empty() ? concat("rows ", first, "–", first + every - 1) : times.at(first);
}

}  // namespace fcp
