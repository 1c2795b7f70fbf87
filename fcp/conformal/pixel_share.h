// How many of an image's pixels a share of them is: what scores ask for and evaluations count.
// Tested by tests/methods/scores/outputs_test.cc.
#pragma once

#include <cmath>
#include <cstdint>

namespace fcp {

// ⌈q P⌉, with q rounded to nine decimals, so that 0.9 of 10 is 9. P < 2^33.
inline int64_t least_pixels(double share, int64_t count) {
  constexpr int64_t kUnit = 1'000'000'000;
  const int64_t units = std::llround(share * static_cast<double>(kUnit));
  return (units * count + kUnit - 1) / kUnit;
}

}  // namespace fcp
