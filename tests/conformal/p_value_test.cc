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

}  // namespace
}  // namespace fcp
