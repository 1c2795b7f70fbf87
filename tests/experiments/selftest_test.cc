// The laws against counting, and the self-test at work in small: the slow test runs all of it.
#include "apps/experiments/selftest.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <gtest/gtest.h>

#include "fcp/base/random.h"

#include "apps/experiments/selftest_worlds.h"

namespace fcp {
namespace {

// All orders of 3 + 3 rows are equally likely: 20 ways to place the three that are calibrated on.
TEST(SelftestLaws, CountsAreThoseOfAllOrders) {
  for (size_t k = 1; k <= 3; ++k) {
    std::vector<double> ways(4);
    for (unsigned mask = 0; mask < 64; ++mask) {
      if (std::popcount(mask) != 3) continue;
      size_t met = 0, below = 0;  // new rows before the k-th of those calibrated on
      for (unsigned place = 0; place < 6 && met < k; ++place) {
        (mask >> place & 1 ? met : below) += 1;
      }
      ways[below] += 1;
    }
    double sum = 0;
    for (size_t c = 0; c <= 3; ++c) {
      sum += ways[c] / 20;
      EXPECT_NEAR(count_cdf({3, 3, k}, c), sum, 1e-12) << k << " " << c;
    }
  }
}

TEST(SelftestLaws, CountsBecomeUniform) {
  EXPECT_DOUBLE_EQ(uniform_of_count({3, 3, 2}, 0, 0), 0);
  EXPECT_DOUBLE_EQ(uniform_of_count({3, 3, 2}, 0, 1), uniform_of_count({3, 3, 2}, 1, 0));
  EXPECT_NEAR(uniform_of_count({3, 3, 2}, 3, 1), 1, 1e-12);
}

TEST(SelftestLaws, DistancesByHand) {
  // Two numbers at 0.5: half of the way up on either side, 2 exp(−2 · 2 / 4).
  EXPECT_NEAR(chance_not_uniform({0.5, 0.5}), 2 * std::exp(-1.0), 1e-12);
  EXPECT_NEAR(chance_too_low({0.1, 0.2, 0.3, 0.4}), std::exp(-2 * 4 * 0.36), 1e-12);
  EXPECT_NEAR(chance_too_low({0.9, 1.0}), std::exp(-2 * 2 * 0.0), 1e-12);
}

TEST(SelftestLaws, AGamblerFindsWhatIsOffAndOnlyThat) {
  Random random(1);
  Gambler fair(Gambler::kTooLow), robbed(Gambler::kTooLow), high(Gambler::kTooHigh);
  for (int i = 0; i < 500; ++i) {
    const double noise = 0.03 * random.normal();
    fair.bet(std::max(-0.1, noise));
    robbed.bet(std::max(-0.1, noise + 0.015));
    high.bet(0.1);
  }
  EXPECT_GT(fair.chance(), 1e-3);
  EXPECT_LT(robbed.chance(), 1e-6);
  EXPECT_LT(high.chance(), 1e-6);
}

TEST(Selftest, HoldsForAFewScores) {
  SelftestOptions options;
  options.replications = 60;
  options.scores = {"residual", "nested", "lac", "spread", "density --union", "rectified residual"};
  const std::vector<SelftestCheck> checks = run_selftest(options);
  ASSERT_EQ(checks.size(), 72u);
  for (const SelftestCheck& check : checks) {
    EXPECT_TRUE(check.passed) << check.world << " " << check.score << " " << check.calibration
                              << ": " << check.coverage << ", chance " << check.chance;
    EXPECT_NEAR(check.coverage, 0.9, 0.05);
  }
}

// Rank 136 of 150 is rank 76 of the 90 that are left: 84 % instead of 90.
TEST(Selftest, FindsRadiiThatAreTooSmall) {
  SelftestOptions options;
  options.replications = 120;
  options.scores = {"residual"};
  options.spoil = 60;
  for (const SelftestCheck& check : run_selftest(options)) {
    EXPECT_FALSE(check.passed) << check.world << " " << check.calibration << ": " << check.coverage
                               << ", chance " << check.chance;
  }
}

TEST(Selftest, SameSeedSameNumbers) {
  SelftestOptions options;
  options.replications = 5;
  options.scores = {"aps"};
  const std::vector<SelftestCheck> one = run_selftest(options), two = run_selftest(options);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_EQ(one[i].chance, two[i].chance);
}

}  // namespace
}  // namespace fcp
