#include "fcp/conformal/p_value.h"

#include <algorithm>
#include <cmath>

#include "fcp/base/error.h"
#include "fcp/conformal/weight_sum.h"

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

}  // namespace fcp
