#include "fcp/conformal/p_value.h"

#include <algorithm>
#include <cmath>

#include "fcp/base/error.h"

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
  long double below = 0, at_least = test_weight;
  for (size_t i = 0; i < sorted.size(); ++i) (sorted[i] < score ? below : at_least) += weights[i];
  const long double total = below + at_least;
  return total > 0 ? static_cast<double>(at_least / total) : 1.0;
}

}  // namespace fcp
