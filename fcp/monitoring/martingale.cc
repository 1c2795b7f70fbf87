#include "fcp/monitoring/martingale.h"

#include <array>
#include <cmath>

#include "fcp/base/error.h"

namespace fcp {
namespace {

constexpr std::array<double, 5> kStakes = {-1, -0.5, 0, 0.5, 1};

std::array<double, kStakes.size()> factors_of(double tilt) {
  std::array<double, kStakes.size()> factors{};
  for (size_t i = 0; i < kStakes.size(); ++i) factors[i] = 1 + kStakes[i] * tilt;
  return factors;
}

}  // namespace

Martingale::Martingale() {
  for (int family = 0; family < 2; ++family) {
    for (const double rate : kJumpRates) jumpers_.emplace_back(kStakes.size(), rate);
  }
}

void Martingale::step(double p_value) {
  if (!(p_value >= 0 && p_value <= 1)) fail("found the p-value ", p_value, ", expected [0, 1]");
  const double slope = 2 * p_value - 1;
  const auto slopes = factors_of(slope), spreads = factors_of(2 * std::abs(slope) - 1);
  for (size_t i = 0; i < jumpers_.size(); ++i) {
    jumpers_[i].step(i < jumpers_.size() / 2 ? slopes : spreads);
  }
}

void Martingale::exchange(SavedState& state) {
  for (Jumper& jumper : jumpers_) jumper.exchange(state);
}

CapitalWatch::CapitalWatch(double false_alarms) : log_threshold_(-std::log(false_alarms)) {
  if (!(false_alarms > 0 && false_alarms < 1)) {
    fail("found the rate of false alarms ", false_alarms, ", expected a number in (0, 1)");
  }
}

bool CapitalWatch::see(size_t row, double log_capital) {
  if (crossed_) return false;
  if (log_capital <= lowest_) {
    lowest_ = log_capital;
    since_ = row;
  }
  if (log_capital < log_threshold_) return false;
  crossed_ = true;
  row_ = row;
  return true;
}

void CapitalWatch::exchange(SavedState& state) {
  state.number(lowest_);
  state.count(since_);
  state.count(row_);
  state.flag(crossed_);
}

}  // namespace fcp
