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

}  // namespace fcp
