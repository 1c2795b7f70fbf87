// +∞: a legal radius, end and length everywhere in fcp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace fcp {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Whether all numbers are finite, and whether there is a NaN among them, at nearly the speed of
// memory: 0 · x is 0 but for NaN and infinities, and eight sums of it, which do not wait for each
// other, are one vector. Only where their total is not 0 the numbers are looked at one by one.
// Tested by tests/base/special_numbers_test.cc.

template <typename Number>
bool all_finite(const Number* numbers, size_t count) {
  constexpr size_t kSums = 8;
  Number sums[kSums] = {}, total = 0;
  size_t i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (size_t k = 0; k < kSums; ++k) sums[k] += 0 * numbers[i + k];
  }
  for (; i < count; ++i) total += 0 * numbers[i];
  for (const Number sum : sums) total += sum;
  return total == 0;
}

template <typename Number>
bool any_nan(const Number* numbers, size_t count) {
  if (all_finite(numbers, count)) return false;
  return std::any_of(numbers, numbers + count, [](Number number) { return std::isnan(number); });
}

}  // namespace fcp
