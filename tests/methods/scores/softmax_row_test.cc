#include "fcp/methods/scores/softmax_row.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "fcp/base/random.h"

namespace fcp {
namespace {

constexpr float kInfinite = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<long double> slow_softmax(const std::vector<float>& logits, double temperature) {
  long double largest = -kInfinite, sum = 0;
  for (const float logit : logits) {
    largest = std::max(largest, static_cast<long double>(logit) / temperature);
  }
  std::vector<long double> shares;
  for (const float logit : logits) {
    shares.push_back(std::exp(static_cast<long double>(logit) / temperature - largest));
    sum += shares.back();
  }
  for (long double& share : shares) share /= sum;
  return shares;
}

TEST(SoftmaxRow, IsThatOfLongDoublesToAFewUnits) {
  Random random(1);
  for (size_t classes = 1; classes < 40; ++classes) {
    for (const double temperature : {1.0, 0.7, 30.0}) {
      std::vector<float> logits(classes);
      for (float& logit : logits) logit = static_cast<float>(8 * random.normal());
      std::vector<double> shares(classes);
      ASSERT_TRUE(softmax_row(logits, temperature, shares.data()));
      const std::vector<long double> expected = slow_softmax(logits, temperature);
      const double largest = *std::max_element(logits.begin(), logits.end());
      double sum = 0;
      for (size_t k = 0; k < classes; ++k) {
        // z / T, m and their difference are rounded to half a unit each, by which the exponential
        // is wrong in proportion to their sizes; exponential, sum and quotient add a few units.
        const double slack =
            0x1p-52 * (6 + std::abs(logits[k]) / temperature + std::abs(largest) / temperature);
        EXPECT_NEAR(shares[k] / static_cast<double>(expected[k]), 1, slack) << classes << ' ' << k;
        sum += shares[k];
      }
      EXPECT_NEAR(sum, 1, 1e-14);
    }
  }
}

TEST(SoftmaxRow, EqualLogitsHaveEqualShares) {
  for (const size_t classes : {1u, 3u, 17u}) {
    const std::vector<float> logits(classes, 2.5f);
    std::vector<double> shares(classes);
    ASSERT_TRUE(softmax_row(logits, 1, shares.data()));
    for (const double share : shares) EXPECT_EQ(share, 1.0 / static_cast<double>(classes));
  }
}

TEST(SoftmaxRow, FarOutAndNotNumbers) {
  std::vector<double> shares(5);
  ASSERT_TRUE(softmax_row(std::vector<float>{0, -kInfinite, 3e38f, -3e38f, 0}, 1, shares.data()));
  EXPECT_EQ(shares, (std::vector<double>{0, 0, 1, 0, 0}));
  for (const float wrong : {kNan, kInfinite}) {
    for (size_t place = 0; place < 5; ++place) {
      std::vector<float> logits = {1, 2, 3, 2, 1};
      logits[place] = wrong;
      EXPECT_FALSE(softmax_row(logits, 1, shares.data())) << wrong << ' ' << place;
    }
  }
  EXPECT_FALSE(softmax_row(std::vector<float>(5, -kInfinite), 1, shares.data()));
}

TEST(SoftmaxRow, FirstLargest) {
  Random random(2);
  for (size_t classes = 1; classes < 30; ++classes) {
    std::vector<float> logits(classes);
    for (float& logit : logits) logit = static_cast<float>(random.below(5));
    const auto largest = std::max_element(logits.begin(), logits.end());
    EXPECT_EQ(first_largest(logits), largest - logits.begin());
  }
}

}  // namespace
}  // namespace fcp
