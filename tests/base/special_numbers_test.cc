#include "fcp/base/special_numbers.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace fcp {
namespace {

template <typename Number>
void expect_found_anywhere() {
  using Limits = std::numeric_limits<Number>;
  for (size_t count = 0; count < 40; ++count) {
    std::vector<Number> numbers(count, Limits::max());
    for (size_t i = 0; i < count; i += 3) numbers[i] = -Limits::max();
    EXPECT_FALSE(any_nan(numbers.data(), count)) << count;
    EXPECT_TRUE(all_finite(numbers.data(), count)) << count;
    for (size_t i = 0; i < count; ++i) {
      std::vector<Number> some = numbers;
      some[i] = Limits::infinity();
      some[count - 1 - i] = -Limits::infinity();
      EXPECT_FALSE(any_nan(some.data(), count)) << i << " of " << count;
      EXPECT_FALSE(all_finite(some.data(), count)) << i << " of " << count;
      some[i] = Limits::quiet_NaN();
      EXPECT_TRUE(any_nan(some.data(), count)) << i << " of " << count;
    }
  }
}

TEST(AnyNan, IsFoundAnywhereAndInfinitiesAreNone) {
  expect_found_anywhere<float>();
  expect_found_anywhere<double>();
}

}  // namespace
}  // namespace fcp
