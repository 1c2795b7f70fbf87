#include "fcp/conformal/p_value.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/conformal/quantile.h"

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
}  // namespace fcp
