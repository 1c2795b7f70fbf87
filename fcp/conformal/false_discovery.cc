#include "fcp/conformal/false_discovery.h"

#include <algorithm>

#include "fcp/base/error.h"

namespace fcp {

std::vector<bool> discoveries(std::span<const double> p_values, const Level& rate) {
  std::vector<double> sorted(p_values.begin(), p_values.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] >= 0 && sorted[i] <= 1) continue;
    fail("p-value ", i, " is ", sorted[i], "; expected a number from 0 to 1");
  }
  std::sort(sorted.begin(), sorted.end());
  const auto count = static_cast<long double>(sorted.size());
  size_t taken = sorted.size();
  while (taken > 0 && !rate.at_most_share(static_cast<long double>(sorted[taken - 1]) * count,
                                          static_cast<long double>(taken))) {
    --taken;
  }
  std::vector<bool> found(p_values.size(), false);
  if (taken == 0) return found;
  for (size_t i = 0; i < found.size(); ++i) found[i] = p_values[i] <= sorted[taken - 1];
  return found;
}

}  // namespace fcp
