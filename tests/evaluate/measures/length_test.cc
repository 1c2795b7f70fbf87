#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/evaluate/measures/interval_evaluation.h"

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
