#include "fcp/evaluate/measures/length.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"

#include "tests/reference/conformal_reference.h"

namespace fcp {
namespace {

using reference::kInfinity;

TEST(LengthSums, InfiniteIntervalsDoNotPoisonTheFiniteMean) {
  LengthSums sums;
  sums.add(0, 2);
  sums.add(1, 5);
  sums.add(3, 1);  // empty
  EXPECT_EQ(sums.summary().mean, 2);
  EXPECT_EQ(sums.summary().mean_finite, 2);
  sums.add(-kInfinity, 0);
  const LengthSummary summary = sums.summary();
  EXPECT_EQ(summary.mean, kInfinity);
  EXPECT_EQ(summary.mean_finite, 2);
  EXPECT_EQ(summary.infinite_share, 0.25);
  EXPECT_EQ(summary.empty_share, 0.25);
  LengthSums infinite;
  infinite.add(-kInfinity, kInfinity);
  EXPECT_EQ(infinite.summary().mean_finite, kInfinity);
  infinite.add(sums);
  EXPECT_EQ(infinite.summary().infinite_share, 0.4);
  EXPECT_THROW(LengthSums{}.summary(), Error);
}

TEST(MedianOf, EqualsTheMiddleOfTheSorted) {
  Random random(1);
  for (int repeat = 0; repeat < 1000; ++repeat) {
    std::vector<double> values(1 + random.below(30));
    for (double& value : values) {
      value = random.below(4) == 0 ? kInfinity : static_cast<double>(random.below(9));
    }
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const double low = sorted[(sorted.size() - 1) / 2];
    const double high = sorted[sorted.size() / 2];
    ASSERT_EQ(median_of(values), (low + high) / 2);
  }
  EXPECT_THROW(median_of({}), Error);
}

TEST(IntervalScore, ChargesLengthAndMisses) {
  const Level level(0.1);
  EXPECT_EQ(interval_score(1, 4, 2, level), 3);
  EXPECT_EQ(interval_score(1, 4, 1, level), 3);
  EXPECT_NEAR(interval_score(1, 4, 0.5, level), 3 + 20 * 0.5, 1e-12);
  EXPECT_NEAR(interval_score(1, 4, 6, level), 3 + 20 * 2, 1e-12);
  EXPECT_EQ(interval_score(-kInfinity, 3, 0, level), kInfinity);
  EXPECT_EQ(interval_score(-kInfinity, 4, 2, level), kInfinity);
  EXPECT_NEAR(interval_score(3, 1, 1.5, level), 20 * 1.5, 1e-12);  // empty: 1.5 from 3
  EXPECT_EQ(interval_score(kInfinity, -kInfinity, 0, level), kInfinity);
}

// Its mean is least at the true quantiles: among intervals for a uniform response at α = 0.2, [0.1,
// 0.9] wins. The exact mean of [l, u] is (u − l) + (l² + (1 − u)²)/α; the grid below holds its
// minimum.
TEST(IntervalScore, IsLeastAtTheQuantiles) {
  const Level level(0.2);
  const auto mean = [&](double lower, double upper) {
    double sum = 0;
    for (int i = 0; i < 1000; ++i) sum += interval_score(lower, upper, (i + 0.5) / 1000, level);
    return sum / 1000;
  };
  const double best = mean(0.1, 0.9);
  for (double lower = 0; lower < 0.45; lower += 0.05) {
    for (double upper = 0.55; upper < 1.01; upper += 0.05) {
      EXPECT_GE(mean(lower, upper), best - 1e-12);
      EXPECT_NEAR(mean(lower, upper),
                  upper - lower + (lower * lower + (1 - upper) * (1 - upper)) / 0.2, 1e-3);
    }
  }
}

TEST(InformativeWeights, AreThePapers) {
  const std::vector<double> labels = {0, 0.5, 1, 0.75, 0.5, 0.5, 0.5, 0.5};
  EXPECT_THAT(
      informative_weights(labels, 4),
      testing::Pointwise(testing::DoubleEq(), {0.4, 0.0, 0.4, 0.2, 0.25, 0.25, 0.25, 0.25}));
  EXPECT_THROW(informative_weights(labels, 3), Error);
  EXPECT_THROW(informative_weights(labels, 0), Error);
  EXPECT_THROW(informative_weights(std::vector<double>{1.5}, 1), Error);
  EXPECT_THROW(informative_weights(std::vector<double>{std::nan("")}, 1), Error);
}

}  // namespace
}  // namespace fcp
