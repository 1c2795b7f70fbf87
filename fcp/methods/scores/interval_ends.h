// Intervals μ ± margin whose law is exact. The ends are rounded inwards and distances upwards, so
// that
//
//   y ∈ [end_up(μ − m), end_down(μ + m)]   ⟺   |y − μ| ≤ m, exactly   ⟺   distance_up(y, μ) ≤ m
//
// for all doubles y, μ and m: an end rounded inwards is the outermost double within the exact end,
// and the least double that is not below the exact distance is at most m exactly where the distance
// is. To the nearest, y = −1e-20 beside μ = 2 would have the distance 2, and [2 − 2, 2 + 2] does
// not hold it. Differences of float32 numbers are mostly exact in double precision, so that
// rounding changes nothing there.
//
// The error of a sum is Knuth's (2Sum, The Art of Computer Programming, volume 2, section 4.2.2),
// that of a product is what a fused multiply-add leaves. Tested by
// tests/methods/scores/law_test.cc.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "fcp/base/infinity.h"
#include "fcp/interval.h"
#include "fcp/methods/scores/least_radius.h"

namespace fcp {

// Whether `sum` = a + b is exact: one of the two differences is computed without rounding (Dekker's
// Fast2Sum), and where the sum is exact, both are. False where it is not finite.
inline bool is_exact(double a, double b, double sum) { return sum - a == b && sum - b == a; }

// The same over many sums without a branch: 0 where both are equal.
inline uint64_t bit_difference(double a, double b) {
  return std::bit_cast<uint64_t>(a) ^ std::bit_cast<uint64_t>(b);
}
inline uint64_t inexactness(double a, double b, double sum) {
  return bit_difference(sum - a, b) | bit_difference(sum - b, a);
}

// What rounding left out of `sum` = a + b; NaN where the sum is not finite.
inline double sum_error(double a, double b, double sum) {
  const double part = sum - a;
  return (a - (sum - part)) + (b - part);
}

// a + b, rounded up.
inline double sum_up(double a, double b) {
  const double sum = a + b;
  if (is_exact(a, b, sum)) [[likely]]
    return sum;
  return sum_error(a, b, sum) > 0 ? std::nextafter(sum, kInfinity) : sum;
}

inline double sum_down(double a, double b) { return -sum_up(-a, -b); }

// |y − μ|, rounded up.
inline double distance_up(double y, double mean) {
  return y < mean ? sum_up(mean, -y) : sum_up(y, -mean);
}

// [low − margin, high + margin], rounded inwards; all there is for an infinite margin.
inline Interval inward_interval(double low, double high, double low_margin, double high_margin) {
  return {low_margin == kInfinity && !std::isnan(low) ? -kInfinity : sum_up(low, -low_margin),
          high_margin == kInfinity && !std::isnan(high) ? kInfinity : sum_down(high, high_margin)};
}

// spread · radius, rounded up, for spreads of 0 and above. Nothing at a negative radius, whatever
// the spread; everything at an infinite one.
inline double spread_margin(double spread, double radius) {
  if (radius < 0) return -kInfinity;
  if (radius == 0 || radius == kInfinity) return std::isnan(spread) ? spread : radius;
  const double product = spread * radius;
  return std::fma(spread, radius, -product) > 0 ? std::nextafter(product, kInfinity) : product;
}

// The least radius whose margin is at least `distance`; NaN where either number is.
inline double spread_score(double distance, double spread) {
  if (std::isnan(distance) || std::isnan(spread)) return std::nan("");
  if (distance == 0) return 0;
  return least_radius([=](double radius) { return spread_margin(spread, radius) >= distance; },
                      distance / spread);
}

}  // namespace fcp
