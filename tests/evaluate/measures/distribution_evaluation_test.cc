#include "fcp/evaluate/measures/distribution_evaluation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"

namespace fcp {
namespace {

// The integral, as a sum over a fine grid, of the step function through the quantiles.
double slow_crps(const std::vector<double>& quantiles, double truth) {
  double sum = 0;
  constexpr double kStep = 1e-3;
  for (double t = -10; t < 10; t += kStep) {
    double below = 0;
    for (const double q : quantiles)
      below += q <= t ? 1 / static_cast<double>(quantiles.size()) : 0;
    const double off = below - (truth <= t ? 1 : 0);
    sum += off * off * kStep;
  }
  return sum;
}

TEST(Crps, IsTheAreaBetweenTheDistributionAndTheTruth) {
  const std::vector<double> one = {2};
  EXPECT_DOUBLE_EQ(crps_of_quantiles(one, 5), 3);  // a point: the absolute error
  std::vector<double> many;
  for (int i = 0; i < 999; ++i) many.push_back(-1 + 2 * (i + 1) / 1000.0);  // uniform on [-1, 1]
  for (const double truth : {-3.0, -0.5, 0.0, 0.25, 2.0}) {
    EXPECT_NEAR(crps_of_quantiles(many, truth), slow_crps(many, truth), 5e-3) << truth;
  }
  EXPECT_NEAR(crps_of_quantiles(many, 0), 1.0 / 6, 1e-3);
  const std::vector<double> open = {0, std::numeric_limits<double>::infinity()};
  EXPECT_EQ(crps_of_quantiles(open, 1), std::numeric_limits<double>::infinity());
}

TEST(DistributionEvaluator, CountsPlacesAndThresholds) {
  DistributionEvaluator evaluator(3);
  const std::vector<double> quantiles = {1, 2, 3};
  for (const auto& [truth, place] : {std::pair(0.0, 0.05), {1.5, 0.35}, {2.5, 0.65}, {9.0, 1.0}}) {
    evaluator.add(quantiles, truth, place);
  }
  const DistributionEvaluation found = evaluator.finish(99);
  EXPECT_EQ(found.rows, 4U);
  EXPECT_THAT(found.pit, testing::ElementsAre(1, 0, 0, 1, 0, 0, 1, 0, 0, 1));
  ASSERT_EQ(found.thresholds.size(), 3U);
  EXPECT_EQ(found.thresholds[1].threshold, 1.5);
  EXPECT_EQ(found.thresholds[1].observed, 0.5);
  EXPECT_EQ(found.thresholds[1].predicted, 2.5 / 4);
  EXPECT_THROW(evaluator.add(quantiles, 0, 1.5), Error);
  EXPECT_THROW(DistributionEvaluator(3).finish(9), Error);
}

// 3,000 experiments of 200 calibration and 300 fresh rows: a bin is outside the band about one time
// in twenty; by Hoeffding the share is within 0.048 of its mean but with a chance below 1e-6.
TEST(DistributionEvaluator, TheBandHoldsNineteenOfTwentyCounts) {
  Random random(5);
  size_t outside = 0;
  constexpr int kExperiments = 3000;
  for (int experiment = 0; experiment < kExperiments; ++experiment) {
    std::vector<double> scores(200);
    for (double& score : scores) score = random.uniform();
    std::sort(scores.begin(), scores.end());
    DistributionEvaluator evaluator(1);
    const double quantile = 0.5;
    for (int row = 0; row < 300; ++row) {
      const double truth = random.uniform();
      const auto below = std::lower_bound(scores.begin(), scores.end(), truth) - scores.begin();
      evaluator.add({&quantile, 1}, truth, (static_cast<double>(below) + random.uniform()) / 201);
    }
    const DistributionEvaluation found = evaluator.finish(200);
    const auto count = static_cast<double>(found.pit[3]);
    outside += count < found.pit_low || count > found.pit_high;
  }
  EXPECT_NEAR(static_cast<double>(outside) / kExperiments, 0.05, 0.05);
}

}  // namespace
}  // namespace fcp
