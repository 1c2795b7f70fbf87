#include "fcp/discoveries.h"

#include <algorithm>
#include <limits>

#include "fcp/base/error.h"

namespace fcp {

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
