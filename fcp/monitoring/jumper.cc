#include "fcp/monitoring/jumper.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fcp/base/error.h"

namespace fcp {

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

}  // namespace fcp
