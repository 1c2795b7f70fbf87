#include "fcp/conformal/rank.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/reference/conformal_reference.h"

namespace fcp {
namespace {

TEST(Rank, KnownValues) {
  EXPECT_EQ(conformal_rank(Level(0.1), 8), 9u);  // more than the 8 scores there are
  EXPECT_EQ(conformal_rank(Level(0.1), 9), 9u);
  EXPECT_EQ(conformal_rank(Level(0.05), 19), 19u);
  EXPECT_EQ(conformal_rank(Level(0.1), 100), 91u);
  EXPECT_EQ(conformal_rank(Level(0.2), 999), 800u);
  EXPECT_EQ(conformal_rank(Level(0.5), 0), 1u);
  EXPECT_EQ(conformal_rank(Level::parse("1e-18"), 1000000), 1000001u);
  EXPECT_EQ(conformal_rank(Level::parse("0.999999999999999999"), 1000000), 1u);
  EXPECT_EQ(conformal_rank(Level::fraction(1, 3), 2), 2u);
}

// The reference tries every k, and so starts from the previous n's answer: k grows with n.
TEST(Rank, IsTheSmallestSufficientIntegerForEveryThousandth) {
  for (uint64_t a = 1; a < 1000; ++a) {
    const Level level = Level::fraction(a, 1000);
    size_t k = 0;
    for (size_t n = 0; n <= 2000; ++n) {
      while (k * 1000 < (1000 - a) * (n + 1)) ++k;
      ASSERT_EQ(conformal_rank(level, n), k) << "alpha " << a << "/1000, n " << n;
    }
    ASSERT_EQ(reference::rank(a, 1000, 2000), k);
  }
}

TEST(Rank, TextAndDoubleGiveTheSameRankAsTheFraction) {
  for (uint64_t a = 1; a < 1000; ++a) {
    const Level exact = Level::fraction(a, 1000);
    ASSERT_EQ(Level(static_cast<double>(a) / 1000), exact) << a;
    ASSERT_EQ(Level::parse(std::to_string(a) + "e-3"), exact) << a;
  }
}

// Why Level exists: the formula written in doubles is off by one for common levels.
TEST(Rank, FloatingPointWouldBeWrong) {
  const auto naive = [](double alpha, size_t n) {
    return static_cast<size_t>(std::ceil((1 - alpha) * static_cast<double>(n + 1)));
  };
  size_t wrong = 0;
  for (uint64_t a = 1; a < 1000; ++a) {
    const double alpha = static_cast<double>(a) / 1000;
    for (size_t n = 0; n <= 2000; ++n) {
      wrong += naive(alpha, n) != conformal_rank(Level::fraction(a, 1000), n);
    }
  }
  EXPECT_GT(wrong, 100u);
  // Neither 0.1 nor 1 - 0.9 shifts the rank.
  EXPECT_EQ(conformal_rank(Level(1 - 0.9), 9), conformal_rank(Level(0.1), 9));
}

TEST(LeastCalibrationRows, IsTheFirstWithARankInside) {
  for (uint64_t a = 1; a < 60; ++a) {
    for (uint64_t b = a + 1; b < 60; ++b) {
      const Level level = Level::fraction(a, b);
      size_t n = 0;
      while (conformal_rank(level, n) > n) ++n;
      EXPECT_EQ(least_calibration_rows(level), n) << a << "/" << b;
    }
  }
  EXPECT_EQ(least_calibration_rows(Level(0.1)), 9u);
  EXPECT_EQ(least_calibration_rows(Level(0.001)), 999u);
  // Beyond 64 bits there is no such number: the answer is at once the largest there is.
  EXPECT_EQ(least_calibration_rows(Level::parse("1e-19")), 9999999999999999999u);
  for (const char* tiny : {"1e-20", "3e-25", "1e-38"}) {
    EXPECT_EQ(least_calibration_rows(Level::parse(tiny)), std::numeric_limits<size_t>::max() - 1);
    EXPECT_EQ(conformal_rank(Level::parse(tiny), 1000), 1001u);
  }
}

}  // namespace
}  // namespace fcp
