#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/evaluate/measures/interval_evaluation.h"

namespace fcp {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();

TEST(Paired, IsTheTextbookFormula) {
  const std::vector<double> a = {3, 5, 4, 8}, b = {1, 6, 2, 5};  // differences 2, −1, 2, 3
  const PairedDifference found = paired_difference(a, b);
  EXPECT_DOUBLE_EQ(found.mean_a, 5);
  EXPECT_DOUBLE_EQ(found.mean_b, 3.5);
  EXPECT_DOUBLE_EQ(found.difference, 1.5);
  const double deviation = std::sqrt((0.25 + 6.25 + 0.25 + 2.25) / 3);
  EXPECT_NEAR(found.high - 1.5, 1.959964 * deviation / 2, 1e-6);
  EXPECT_NEAR(1.5 - found.low, 1.959964 * deviation / 2, 1e-6);
  EXPECT_FALSE(found.certain());
}

TEST(Paired, LeavesInfinitePairsOut) {
  const std::vector<double> a = {1, kFar, 3}, b = {2, 2, kFar};
  const PairedDifference found = paired_difference(a, b);
  EXPECT_EQ(found.rows, 1u);
  EXPECT_EQ(found.infinite_a, 1u);
  EXPECT_EQ(found.infinite_b, 1u);
  EXPECT_DOUBLE_EQ(found.difference, -1);
  EXPECT_FALSE(found.certain());
  EXPECT_THROW(paired_difference(a, std::vector<double>{1}), Error);
  EXPECT_THROW(paired_difference(std::vector<double>{std::nan("")}, std::vector<double>{1}), Error);
}

// Of 4,000 comparisons without a difference, 5 % are certain by chance: at most 7 %, which fails
// with probability below 1e-6; and at least 3 %.
TEST(Paired, HoldsItsConfidence) {
  size_t certain = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    Random random(seed);
    std::vector<double> a(200), b(200);
    for (size_t i = 0; i < 200; ++i) {
      const double shared = 10 * random.normal();
      a[i] = shared + random.normal();
      b[i] = shared + random.normal();
    }
    certain += paired_difference(a, b).certain() ? 1 : 0;
  }
  EXPECT_LT(certain, 280u);
  EXPECT_GT(certain, 120u);
}

}  // namespace
}  // namespace fcp
