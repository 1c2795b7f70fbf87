// The smallest double at which a condition that stays true once it is true becomes true: how a
// score follows from its region to the last bit, whatever the region's arithmetic rounds.
//
//   score(v, y) = least_radius([&](double r) { return region(v, r) ∋ y; }, guess)
//
// Doubles are ordered like whole numbers, so the search gallops away from the guess in steps of 1,
// 2, 4, … representable numbers and bisects. Assumes that the condition is monotone as computed,
// which holds where every operation on the way from r to the ends is monotone. Cost: two to four
// questions where the guess is right up to rounding, about 130 at worst.
// Tested by tests/methods/scores/law_test.cc; CUDA kernels use it too.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

#include "fcp/base/anywhere.h"

namespace fcp {

// The place of a double among all doubles, and back: −x comes before −0, then 0, then x.
FCP_ANYWHERE inline int64_t double_order(double value) {
  const auto bits = std::bit_cast<int64_t>(value);
  return bits >= 0 ? bits : std::numeric_limits<int64_t>::min() - bits - 1;
}
FCP_ANYWHERE inline double double_at(int64_t order) {
  return std::bit_cast<double>(order >= 0 ? order
                                          : std::numeric_limits<int64_t>::min() - order - 1);
}

constexpr int64_t kLongestStep = int64_t{1} << 61;  // of a search

// +∞ where no finite number satisfies the condition.
template <typename Condition>
FCP_ANYWHERE double least_radius(const Condition& holds, double guess) {
  const double largest = std::numeric_limits<double>::max();
  const int64_t first = double_order(-largest), last = double_order(largest);
  if (!(std::abs(guess) <= largest)) guess = guess > 0 ? largest : 0;
  int64_t below = double_order(guess), above = below;  // `holds` at above, not at below
  if (holds(guess)) {
    for (int64_t step = 1;; step = step < kLongestStep ? 2 * step : step) {
      if (below == first) return double_at(first);
      below = below > first + step ? below - step : first;
      if (!holds(double_at(below))) break;
      above = below;
    }
  } else {
    for (int64_t step = 1;; step = step < kLongestStep ? 2 * step : step) {
      if (above == last) return std::numeric_limits<double>::infinity();
      above = above < last - step ? above + step : last;
      if (holds(double_at(above))) break;
      below = above;
    }
  }
  while (above - 1 > below) {
    const int64_t middle = std::midpoint(below, above);
    (holds(double_at(middle)) ? above : below) = middle;
  }
  return double_at(above) + 0.0;  // no −0
}

}  // namespace fcp
