#include "fcp/base/lanes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "fcp/base/random.h"

namespace fcp {
namespace {

std::vector<float> random_floats(Random& random, size_t count) {
  std::vector<float> numbers(count);
  for (float& number : numbers) number = static_cast<float>(random.normal());
  return numbers;
}

TEST(Lanes, SumAndLargest) {
  Random random(1);
  for (int repeat = 0; repeat < 100; ++repeat) {
    const std::vector<float> numbers = random_floats(random, kLanes);
    const double sum = std::accumulate(numbers.begin(), numbers.end(), 0.0);
    EXPECT_NEAR(sum_of(lanes(numbers.data())), sum, 1e-5);
    EXPECT_EQ(largest_of(lanes(numbers.data())), *std::max_element(numbers.begin(), numbers.end()));
  }
}

TEST(Lanes, AnyOf) {
  const LaneMask none{};
  EXPECT_FALSE(any_of(&none));
  for (size_t lane = 0; lane < kLanes; ++lane) {
    LaneMask mask{};
    mask[lane] = -1;
    EXPECT_TRUE(any_of(&mask)) << lane;
  }
}

// The order of the additions is part of the answer: a larger number never makes a smaller sum.
TEST(Lanes, SumIsMonotone) {
  Random random(2);
  for (int repeat = 0; repeat < 1000; ++repeat) {
    std::vector<float> numbers = random_floats(random, kLanes);
    const float before = sum_of(lanes(numbers.data()));
    float& raised = numbers[static_cast<size_t>(repeat) % kLanes];
    raised = std::nextafter(raised, 10.0f);
    EXPECT_GE(sum_of(lanes(numbers.data())), before);
  }
}

TEST(Lanes, Transposed) {
  Random random(4);
  constexpr size_t kStride = 21;
  const std::vector<float> rows = random_floats(random, kLanes * kStride);
  std::vector<float> columns(kLanes * kLanes);
  transpose_lanes(rows.data(), kStride, columns.data());
  for (size_t i = 0; i < kLanes; ++i) {
    for (size_t j = 0; j < kLanes; ++j) EXPECT_EQ(columns[j * kLanes + i], rows[i * kStride + j]);
  }
}

// In units of the last place of the exact answer.
double units_off(float found, double exact) {
  const auto size = static_cast<float>(std::fabs(exact));
  return std::fabs(found - exact) / (std::nextafter(size, 1e30f) - size);
}

TEST(LaneFunctions, ExpAndErfAreExactToTwoUnits) {
  for (int i = 0; i < 400000; ++i) {
    const float x = -87.0f + 175.0f * static_cast<float>(i) / 400000, t = x / 20;
    Floats4::Type e = {x, 0, x, x}, f = {t, t, 0, t};
    exp_floats<Floats4>(e);
    erf_floats<Floats4>(f);
    ASSERT_LT(units_off(e[0], std::exp(static_cast<double>(x))), 2) << x;
    ASSERT_LT(units_off(f[0], std::erf(static_cast<double>(t))), 2) << t;
    ASSERT_TRUE(e[0] == e[2] && f[0] == f[3]) << x;
  }
}

TEST(LaneFunctions, TanhAndSigmoidAreExactToThreeUnits) {
  for (int i = 0; i < 400000; ++i) {
    const float x = -80.0f + 160.0f * static_cast<float>(i) / 400000, t = x / 10;
    Floats4::Type s = {x, 0, x, x}, h = {t, t, 0, t};
    sigmoid_floats<Floats4>(s);
    tanh_floats<Floats4>(h);
    ASSERT_LT(units_off(s[0], 1 / (1 + std::exp(-static_cast<double>(x)))), 3) << x;
    ASSERT_LT(units_off(h[0], std::tanh(static_cast<double>(t))), 3) << t;
    ASSERT_TRUE(s[0] == s[2] && h[0] == h[3]) << x;
  }
  const float most = std::numeric_limits<float>::infinity(), none = std::nanf("");
  Floats4::Type s = {most, -most, none, 0}, h = s;
  sigmoid_floats<Floats4>(s);
  tanh_floats<Floats4>(h);
  EXPECT_TRUE(s[0] == 1 && s[1] == 0 && std::isnan(s[2]) && s[3] == 0.5f);
  EXPECT_TRUE(h[0] == 1 && h[1] == -1 && std::isnan(h[2]) && h[3] == 0);
}

template <typename Doubles>
double exp_of(double x) {
  typename Doubles::Type some = typename Doubles::Type{} + x;
  exp_below_zero<Doubles>(some);
  return some[1];
}

TEST(LaneFunctions, ExpOfDoublesIsExactToOneUnit) {
  Random random(9);
  for (int i = 0; i < 200000; ++i) {
    const double x = -708 * std::pow(random.uniform(), 4);
    const long double exact = std::exp(static_cast<long double>(x));
    for (const double found : {exp_of<Doubles2>(x), exp_of<Doubles4>(x), exp_of<Doubles8>(x)}) {
      const auto relative = static_cast<double>((found - exact) / exact);
      ASSERT_LT(std::abs(relative), 0x1p-52) << x;
    }
  }
  EXPECT_EQ(exp_of<Doubles4>(0), 1);
  EXPECT_EQ(exp_of<Doubles4>(-709), 0);
  EXPECT_EQ(exp_of<Doubles4>(-std::numeric_limits<double>::infinity()), 0);
  EXPECT_TRUE(std::isnan(exp_of<Doubles4>(std::numeric_limits<double>::quiet_NaN())));
}

TEST(LaneFunctions, FarOutAndNotNumbers) {
  const float infinite = std::numeric_limits<float>::infinity();
  Floats4::Type of_e = {infinite, -infinite, NAN, -100}, of_f = {infinite, -infinite, NAN, -0.0f};
  exp_floats<Floats4>(of_e);
  erf_floats<Floats4>(of_f);
  float e[4], f[4];
  for (size_t i = 0; i < 4; ++i) {
    e[i] = of_e[i];
    f[i] = of_f[i];
  }
  EXPECT_EQ(e[0], infinite);
  EXPECT_EQ(e[1], 0);
  EXPECT_TRUE(std::isnan(e[2]));
  EXPECT_EQ(e[3], 0);
  EXPECT_EQ(f[0], 1);
  EXPECT_EQ(f[1], -1);
  EXPECT_TRUE(std::isnan(f[2]));
  EXPECT_TRUE(std::signbit(f[3]));
}

TEST(Lanes, WeightedRows) {
  Random random(3);
  constexpr size_t kWidth = padded(100), kRows = 9;
  static_assert(kWidth == 112 && padded(16) == 16 && padded(0) == 0);
  const std::vector<float> matrix = random_floats(random, kRows * kWidth);
  const std::vector<float> weights = random_floats(random, kRows);
  const std::vector<uint32_t> rows = {3, 0, 8, 8, 1, 2, 7};
  for (size_t count = 0; count <= rows.size(); ++count) {
    std::vector<float> sum(kWidth, 1.0f);
    add_rows(sum.data(), matrix.data(), kWidth, {rows.data(), weights.data(), count});
    for (size_t j = 0; j < kWidth; ++j) {
      double expected = 1;
      for (size_t i = 0; i < count; ++i) {
        expected += static_cast<double>(weights[i]) * matrix[rows[i] * kWidth + j];
      }
      EXPECT_NEAR(sum[j], expected, 1e-5);
    }
  }
}

}  // namespace
}  // namespace fcp
