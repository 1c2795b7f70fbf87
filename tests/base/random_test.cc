#include "fcp/base/random.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace fcp {
namespace {

TEST(Random, SameSeedSameNumbers) {
  Random a(7), b(7), c(8);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const uint64_t bits = a.bits();
    EXPECT_EQ(bits, b.bits());
    differs = differs || bits != c.bits();
  }
  EXPECT_TRUE(differs);
}

// The largest distance between the empirical distribution and the true one exceeds
// √(ln(2/δ) / 2n) with probability at most δ (Dvoretzky, Kiefer, Wolfowitz, Massart); δ = 1e-6.
double allowed_distance(size_t n) {
  return std::sqrt(std::log(2 / 1e-6) / (2 * static_cast<double>(n)));
}

template <typename Cdf>
double distance(std::vector<double> values, Cdf cdf) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  double largest = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double p = cdf(values[i]);
    largest = std::max({largest, std::abs(p - static_cast<double>(i) / n),
                        std::abs(p - static_cast<double>(i + 1) / n)});
  }
  return largest;
}

TEST(Random, UniformAndNormalFollowTheirLaws) {
  constexpr size_t kDraws = 100000;
  Random random(1);
  std::vector<double> uniform, normal;
  for (size_t i = 0; i < kDraws; ++i) {
    uniform.push_back(random.uniform());
    normal.push_back(random.normal());
  }
  EXPECT_LT(distance(uniform, [](double x) { return x; }), allowed_distance(kDraws));
  EXPECT_LT(distance(normal, [](double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }),
            allowed_distance(kDraws));
}

TEST(Random, BelowReachesEveryNumberEquallyOften) {
  constexpr int kDraws = 60000;
  Random random(2);
  std::vector<int> counts(6, 0);
  for (int i = 0; i < kDraws; ++i) ++counts[random.below(6)];
  // Hoeffding with a union over six counts: false alarm below 1e-6.
  const double slack = std::sqrt(std::log(2 * 6 / 1e-6) / 2 * kDraws);
  for (const int count : counts) EXPECT_NEAR(count, kDraws / 6, slack);
}

TEST(Random, PermutationHoldsEachIndexOnce) {
  std::vector<size_t> order = Random(3).permutation(1000);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], i);
  EXPECT_TRUE(Random(3).permutation(0).empty());
}

}  // namespace
}  // namespace fcp
