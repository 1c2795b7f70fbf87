#include "fcp/conformal/p_value.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fcp/base/error.h"
#include "fcp/conformal/quantile.h"
#include "fcp/discoveries.h"

namespace fcp {

PValue conformal_p_value(std::span<const double> sorted, double score) {
  if (std::isnan(score)) fail("the p-value of a test score that is NaN does not exist");
  const auto first = std::lower_bound(sorted.begin(), sorted.end(), score);
  const size_t at_least = static_cast<size_t>(sorted.end() - first);
  return {.numerator = 1 + at_least, .denominator = 1 + sorted.size()};
}

double weighted_p_value(std::span<const double> sorted, std::span<const double> weights,
                        double test_weight, double score) {
  if (std::isnan(score)) fail("the p-value of a test score that is NaN does not exist");
  if (sorted.size() != weights.size()) {
    fail("found ", weights.size(), " weights for ", sorted.size(), " scores");
  }
  // In the order in which weighted_quantile_sorted adds, so that the sums are the same.
  WeightSum total = test_weight, at_least = test_weight;
  for (const double weight : weights) total += weight;
  for (size_t i = sorted.size(); i > 0 && sorted[i - 1] >= score; --i) at_least += weights[i - 1];
  return total > 0 ? weight_share(at_least, total) : 1.0;
}

std::vector<bool> discoveries(std::span<const double> p_values, const Level& rate,
                              Dependence dependence) {
  std::vector<double> sorted(p_values.begin(), p_values.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] >= 0 && sorted[i] <= 1) continue;
    fail("p-value ", i, " is ", sorted[i], "; expected a number from 0 to 1");
  }
  std::sort(sorted.begin(), sorted.end());
  const auto count = static_cast<long double>(sorted.size());
  // p-values are fractions, rounded, and equal to q k / m where both fractions are: a few units of
  // their last digit are less than fractions of counts of rows differ by.
  constexpr long double kRounding = 4 * std::numeric_limits<double>::epsilon();
  long double harmonic = 1;
  for (size_t k = 2; dependence == Dependence::kAny && k <= sorted.size(); ++k) {
    harmonic += 1 / static_cast<long double>(k);
  }
  const auto may_be_taken = [&](size_t k) {
    const long double limit =
        static_cast<long double>(rate.value()) * static_cast<long double>(k) / harmonic;
    return static_cast<long double>(sorted[k - 1]) * count <= limit * (1 + kRounding);
  };
  size_t taken = sorted.size();
  while (taken > 0 && !may_be_taken(taken)) --taken;
  std::vector<bool> found(p_values.size(), false);
  if (taken == 0) return found;
  for (size_t i = 0; i < found.size(); ++i) found[i] = p_values[i] <= sorted[taken - 1];
  return found;
}

}  // namespace fcp
