#include "fcp/monitoring/martingale.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

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

Jumper::Jumper(size_t bets, double rate) : table_(bets, 0.0), rate_(rate) {
  if (bets == 0 || !(rate > 0 && rate <= 1)) {
    fail("a jumper needs bets and a rate in (0, 1], found ", bets, " bets and rate ", rate);
  }
}

void Jumper::step(std::span<const double> factors) {
  if (factors.size() != table_.size()) {
    fail("found ", factors.size(), " factors for ", table_.size(), " bets");
  }
  rounds_ += 1;
  const auto bets = static_cast<double>(table_.size());
  const double laid = std::exp(-scale_) / (rounds_ * (rounds_ + 1)) / bets;
  for (double& money : table_) money += laid;
  const double dealt = rate_ * std::accumulate(table_.begin(), table_.end(), 0.0) / bets;
  for (size_t i = 0; i < table_.size(); ++i) {
    table_[i] = ((1 - rate_) * table_[i] + dealt) * factors[i];
  }
  const double sum = std::accumulate(table_.begin(), table_.end(), 0.0);
  if (sum > 1e100 || (sum > 0 && sum < 1e-100)) {
    for (double& money : table_) money /= sum;
    scale_ += std::log(sum);
  }
}

double Jumper::log_capital() const {
  const double purse = -std::log1p(rounds_);
  const double sum = std::accumulate(table_.begin(), table_.end(), 0.0);
  if (sum == 0) return purse;
  const double table = scale_ + std::log(sum);
  return std::max(purse, table) + std::log1p(std::exp(-std::abs(purse - table)));
}

void Jumper::exchange(SavedState& state) {
  state.expect(table_.size(), "bets");
  for (double& money : table_) state.number(money);
  state.number(scale_);
  state.number(rounds_);
}

double log_mean_exp(std::span<const double> logs) {
  const double largest = *std::max_element(logs.begin(), logs.end());
  double sum = 0;
  for (const double value : logs) sum += std::exp(value - largest);
  return largest + std::log(sum / static_cast<double>(logs.size()));
}

double log_mean_capital(std::span<const Jumper> jumpers) {
  std::vector<double> logs;
  for (const Jumper& jumper : jumpers) logs.push_back(jumper.log_capital());
  return log_mean_exp(logs);
}

namespace {

constexpr uint64_t kTosses = uint64_t{1} << 20;

}  // namespace

Transducer::Transducer(std::vector<double> reference, uint64_t seed, size_t most)
    : bag_(std::move(reference)), seed_(seed), random_(seed), most_(std::max(most, bag_.size())) {}

// Of a million tosses each, seeded anew, so that going on from a state is quick: it winds forward
// through the last of them.
uint64_t Transducer::toss() {
  if (tossed_ % kTosses == 0) random_ = Random(seed_ ^ (tossed_ / kTosses) << 32);
  ++tossed_;
  return random_.bits();
}

uint64_t Transducer::toss_below(uint64_t limit) {
  const uint64_t rejected = (0 - limit) % limit;  // 2^64 mod limit would come too often
  uint64_t found = toss();
  while (found < rejected) found = toss();
  return found % limit;
}

double Transducer::next(double score) {
  const size_t before = bag_.size();
  const size_t at_most = bag_.count_at_most(score);
  const size_t equal = at_most - bag_.count_below(score);
  const double coin = 1 - static_cast<double>(toss() >> 11) * 0x1p-53;
  bag_.insert(score);
  if (bag_.size() > most_) bag_.erase(bag_.kth(toss_below(bag_.size())));
  return (static_cast<double>(before - at_most) + coin * static_cast<double>(1 + equal)) /
         static_cast<double>(before + 1);
}

void Transducer::exchange(SavedState& state) {
  state.expect(most_, "scores at most");
  std::vector<double> scores = bag_.sorted();
  state.numbers(scores);
  if (scores.size() > most_) fail("a monitor's state has ", scores.size(), " scores of ", most_);
  size_t tossed = tossed_;
  state.count(tossed);
  if (state.writes()) return;
  bag_ = RankedScores(std::move(scores));
  tossed_ = tossed - tossed % kTosses;
  while (tossed_ < tossed) toss();
}

}  // namespace fcp
