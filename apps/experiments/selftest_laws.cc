#include "apps/experiments/selftest_laws.h"

#include <algorithm>
#include <cmath>

namespace fcp {
namespace {

double log_choose(size_t n, size_t k) {
  const auto log_factorial = [](size_t x) { return std::lgamma(static_cast<double>(x) + 1); };
  return log_factorial(n) - log_factorial(k) - log_factorial(n - k);
}

// P(count = c): c of the m rows rank among the first k − 1 of the n, the others after it.
double count_probability(const CountLaw& law, size_t c) {
  const auto [n, m, k] = law;
  return std::exp(log_choose(c + k - 1, c) + log_choose(m - c + n - k, m - c) -
                  log_choose(n + m, m));
}

// The largest F_T(x) − x: how far the numbers lean to the low side.
double excess_below(const std::vector<double>& sorted) {
  double most = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const double share = static_cast<double>(i + 1) / static_cast<double>(sorted.size());
    most = std::max(most, share - sorted[i]);
  }
  return most;
}

double tail(double distance, size_t count) {
  return std::exp(-2 * static_cast<double>(count) * distance * distance);
}

}  // namespace

double count_cdf(const CountLaw& law, size_t c) {
  double sum = 0;
  for (size_t i = 0; i <= c; ++i) sum += count_probability(law, i);
  return std::min(1.0, sum);
}

double uniform_of_count(const CountLaw& law, size_t c, double u) {
  return std::min(1.0, (c == 0 ? 0 : count_cdf(law, c - 1)) + u * count_probability(law, c));
}

double chance_too_low(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return tail(excess_below(values), values.size());
}

double chance_not_uniform(std::vector<double> values) {
  const double low = chance_too_low(values);
  for (double& value : values) value = 1 - value;
  return std::min(1.0, 2 * std::min(low, chance_too_low(values)));
}

// 1 + stake · number must stay positive.
Gambler::Gambler(Side side)
    : stakes_(side == kTooLow ? std::vector<double>{1, 2, 4, 8}
                              : std::vector<double>{0.2, 0.4, 0.8}),
      log_wealth_(stakes_.size()) {}

void Gambler::bet(double number) {
  for (size_t i = 0; i < stakes_.size(); ++i) log_wealth_[i] += std::log1p(stakes_[i] * number);
}

double Gambler::chance() const {
  double wealth = 0;
  for (const double log : log_wealth_) wealth += std::exp(log);
  return std::min(1.0, static_cast<double>(stakes_.size()) / wealth);
}

}  // namespace fcp
