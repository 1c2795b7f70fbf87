#include "fcp/conformal/p_value.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/conformal/quantile.h"
#include "fcp/discoveries.h"

#include "tests/reference/conformal_reference.h"

namespace fcp {
namespace {

using reference::kInfinity;

TEST(PValue, KnownValues) {
  const std::vector<double> sorted = {1, 2, 2, 3};
  EXPECT_EQ(conformal_p_value(sorted, 0).value(), 1.0);
  EXPECT_EQ(conformal_p_value(sorted, 2).value(), 4.0 / 5);
  EXPECT_EQ(conformal_p_value(sorted, 2.5).value(), 2.0 / 5);
  EXPECT_EQ(conformal_p_value(sorted, kInfinity).value(), 1.0 / 5);
  EXPECT_EQ(conformal_p_value({}, 7).value(), 1.0);
  EXPECT_THROW(conformal_p_value(sorted, std::nan("")), Error);
}

TEST(PValue, CountsByBinarySearch) {
  Random random(1);
  for (int repeat = 0; repeat < 2000; ++repeat) {
    std::vector<double> scores(random.below(40));
    for (double& score : scores) score = static_cast<double>(random.below(8));
    const double test = static_cast<double>(random.below(9)) - 0.5 * random.below(2);
    size_t at_least = 0;
    for (const double score : scores) at_least += score >= test;
    const PValue p = conformal_p_value(sorted_scores(scores), test);
    ASSERT_EQ(p.numerator, 1 + at_least);
    ASSERT_EQ(p.denominator, 1 + scores.size());
  }
}

// s ≤ radius ⟺ p > α, with ties, infinities and levels at which α(n + 1) is an integer.
TEST(PValue, IsTheDualOfTheQuantile) {
  Random random(2);
  size_t inside = 0, checks = 0;
  const auto draw = [&] {
    const uint64_t kind = random.below(12);
    return kind == 0 ? kInfinity : kind == 1 ? -kInfinity : static_cast<double>(random.below(6));
  };
  for (int repeat = 0; repeat < 2000; ++repeat) {
    std::vector<double> scores(random.below(30));
    for (double& score : scores) score = draw();
    const std::vector<double> sorted = sorted_scores(scores);
    const double test = draw();
    const PValue p = conformal_p_value(sorted, test);
    for (uint64_t denominator = 2; denominator <= 31; ++denominator) {
      const Level level = Level::fraction(1 + random.below(denominator - 1), denominator);
      const bool in_region = test <= conformal_quantile_sorted(sorted, level);
      ASSERT_EQ(p.exceeds(level), in_region) << level.text() << ", n " << scores.size();
      inside += in_region;
      ++checks;
    }
  }
  EXPECT_GT(inside, checks / 10);  // both answers occur
  EXPECT_LT(inside, checks - checks / 10);
}

// Where a p-value is exactly α, it must not exceed α as a double either.
TEST(PValue, EqualFractionsAreEqualDoubles) {
  for (size_t denominator = 2; denominator < 3000; ++denominator) {
    for (size_t numerator = 1; numerator < denominator; numerator += 1 + denominator / 100) {
      const PValue p{.numerator = numerator, .denominator = denominator};
      ASSERT_EQ(p.value(), Level::fraction(numerator, denominator).value());
    }
  }
  EXPECT_EQ((PValue{115, 2051}).value(), Level::fraction(115, 2051).value());
}

TEST(WeightedPValue, KnownValues) {
  const std::vector<double> sorted = {1, 2, 2, 3};
  const std::vector<double> weights = {4, 1, 2, 0};
  EXPECT_EQ(weighted_p_value(sorted, weights, 1, 0), 1.0);
  EXPECT_EQ(weighted_p_value(sorted, weights, 1, 1), 1.0);
  EXPECT_EQ(weighted_p_value(sorted, weights, 1, 1.5), 0.5);
  EXPECT_EQ(weighted_p_value(sorted, weights, 1, 2), 0.5);
  EXPECT_EQ(weighted_p_value(sorted, weights, 1, 2.5), 1.0 / 8);
  EXPECT_EQ(weighted_p_value(sorted, weights, 1, kInfinity), 1.0 / 8);
  EXPECT_EQ(weighted_p_value(sorted, weights, 0, kInfinity), 0.0);
  EXPECT_EQ(weighted_p_value(sorted, std::vector<double>(4, 0.0), 0, 2), 1.0);
  EXPECT_EQ(weighted_p_value({}, {}, 3, 2), 1.0);
  EXPECT_THROW(weighted_p_value(sorted, weights, 1, std::nan("")), Error);
  EXPECT_THROW(weighted_p_value(sorted, std::vector<double>(3, 1.0), 1, 2), Error);
}

TEST(WeightedPValue, EqualWeightsGiveThePlainOne) {
  Random random(3);
  for (const double weight : {1.0, 0.1, 1e-300, 1.0 / 3}) {
    for (int repeat = 0; repeat < 300; ++repeat) {
      std::vector<double> scores(random.below(120));
      for (double& score : scores) score = static_cast<double>(random.below(8));
      scores = sorted_scores(scores);
      const double test = static_cast<double>(random.below(9));
      ASSERT_EQ(weighted_p_value(scores, std::vector<double>(scores.size(), weight), weight, test),
                conformal_p_value(scores, test).value());
    }
  }
}

// s ≤ radius ⟺ p > α, with ties of scores, and weights in tenths, whose sums nearly tie with α.
TEST(WeightedPValue, IsTheDualOfTheQuantile) {
  Random random(4);
  size_t inside = 0, checks = 0;
  for (int repeat = 0; repeat < 4000; ++repeat) {
    std::vector<double> scores(random.below(12)), weights(scores.size());
    for (double& score : scores) {
      score = random.below(9) == 0 ? kInfinity : static_cast<double>(random.below(6));
    }
    scores = sorted_scores(scores);
    const bool tenths = repeat % 2 == 0;
    const auto draw = [&] {
      return tenths ? static_cast<double>(random.below(6)) / 10 : random.uniform();
    };
    for (double& weight : weights) weight = draw();
    const double own = draw();
    const double test = random.below(9) == 0 ? kInfinity : static_cast<double>(random.below(7));
    const double p = weighted_p_value(scores, weights, own, test);
    for (uint64_t a = 1; a < 20; ++a) {
      const Level level = Level::fraction(a, 20);
      const bool in_region = test <= weighted_quantile_sorted(scores, weights, own, level);
      ASSERT_EQ(p > level.value(), in_region) << level.text() << ", p " << p;
      inside += in_region;
      ++checks;
    }
  }
  EXPECT_GT(inside, checks / 10);
  EXPECT_LT(inside, checks - checks / 10);
}

}  // namespace
namespace {

using testing::ElementsAre;

TEST(FalseDiscovery, ByHand) {
  // At 0.2 of five: thresholds 0.04, 0.08, 0.12, 0.16, 0.2.
  const std::vector<double> p = {0.5, 0.01, 0.12, 0.9, 0.05};
  EXPECT_THAT(discoveries(p, Level(0.2)), ElementsAre(false, true, true, false, true));
  EXPECT_THAT(discoveries(p, Level(0.05)), ElementsAre(false, true, false, false, false));
  EXPECT_THAT(discoveries(std::vector<double>{0.3, 0.4}, Level(0.1)), ElementsAre(false, false));
  // A later one takes earlier ones along, and equal ones come together.
  EXPECT_THAT(discoveries(std::vector<double>{0.09, 0.09, 0.1}, Level(0.1)),
              ElementsAre(true, true, true));
  EXPECT_TRUE(discoveries({}, Level(0.1)).empty());
  EXPECT_THROW(discoveries(std::vector<double>{std::nan("")}, Level(0.1)), Error);
}

// Whatever the dependence: 0.2 / (1 + 1/2 + 1/3) of three is 0.1091, so 0.0364, 0.0727, 0.1091.
TEST(FalseDiscovery, AnyDependenceTakesLess) {
  const std::vector<double> p = {0.05, 0.12, 0.07};
  EXPECT_THAT(discoveries(p, Level(0.2)), ElementsAre(true, true, true));
  EXPECT_THAT(discoveries(p, Level(0.2), Dependence::kAny), ElementsAre(true, false, true));
  EXPECT_THAT(discoveries(std::vector<double>{0.2}, Level(0.2), Dependence::kAny),
              ElementsAre(true));
}

// The definition, for any k, in whole numbers: j / 40 ≤ 0.2 k / m.
TEST(FalseDiscovery, TakesTheLargestNumberThatMayBeTaken) {
  Random random(3);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<size_t> fortieths(1 + random.below(30));
    for (size_t& one : fortieths) one = random.below(41);
    std::vector<double> p;
    for (const size_t one : fortieths) p.push_back(static_cast<double>(one) / 40);
    std::sort(fortieths.begin(), fortieths.end());
    size_t most = 0;
    for (size_t k = 1; k <= p.size(); ++k) {
      if (fortieths[k - 1] * p.size() <= 8 * k) most = k;
    }
    const std::vector<bool> found = discoveries(p, Level(0.2));
    EXPECT_EQ(static_cast<size_t>(std::count(found.begin(), found.end(), true)), most);
  }
}

// 1,000 draws of 100 calibration rows and 50 new ones, five of them outliers. Shares of false
// discoveries are in [0, 1]: by Hoeffding their mean exceeds its expectation, at most 0.18, by
// 0.084 with a chance below 1e-6.
TEST(FalseDiscovery, RateIsKeptOverCalibrations) {
  Random random(4);
  double rate = 0, power = 0;
  constexpr int kDraws = 1000;
  for (int draw = 0; draw < kDraws; ++draw) {
    std::vector<double> scores(100), p;
    for (double& score : scores) score = std::abs(random.normal());
    std::sort(scores.begin(), scores.end());
    for (int i = 0; i < 50; ++i) {
      const double score = std::abs(random.normal()) + (i < 5 ? 4 : 0);
      p.push_back(conformal_p_value(scores, score).value());
    }
    const std::vector<bool> found = discoveries(p, Level(0.2));
    const auto right = std::count(found.begin(), found.begin() + 5, true);
    const auto all = std::count(found.begin(), found.end(), true);
    if (all > 0) rate += static_cast<double>(all - right) / static_cast<double>(all) / kDraws;
    power += static_cast<double>(right) / 5 / kDraws;
  }
  EXPECT_LT(rate, 0.18 + 0.084);
  EXPECT_GT(power, 0.8);
}

}  // namespace
}  // namespace fcp
