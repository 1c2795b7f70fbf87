#include "fcp/methods/scores/radius_search.h"

#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "fcp/base/random.h"

namespace fcp {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr float kLargestFloat = std::numeric_limits<float>::max();
constexpr float kLeastFloat = std::numeric_limits<float>::denorm_min();
constexpr RadiusRange kRanges[] = {RadiusRange::kFromZero, RadiusRange::kSigned};

double smallest_of(RadiusRange range) { return range == RadiusRange::kSigned ? -kLargestFloat : 0; }

// A finite float32 of either sign, every exponent as likely as any other.
float any_float(Random& random) {
  const auto size = std::bit_cast<float>(static_cast<uint32_t>(random.below(0x7f800000)));
  return random.below(2) == 0 ? size : -size;
}

std::vector<double> extremes() {
  return {0,      kLeastFloat,  -kLeastFloat,  kLargestFloat, -kLargestFloat, 1,
          -1,     kNever,       -kNever,       1e-300,        -1e-300,        1e300,
          -1e300, 0.1,          -0.1,          1 + 1e-12,     -1 - 1e-12,     1e-46,
          -1e-46, 3.4028236e38, -3.4028236e38, 1 - 1e-12};
}

torch::Tensor doubles(const std::vector<double>& values) {
  return torch::tensor(values, torch::kDouble);
}

// It holds from a threshold on: the answer is the threshold itself, whatever its size.
TEST(SmallestRadius, FindsEveryThreshold) {
  Random random(1);
  std::vector<double> thresholds = {0,
                                    kLeastFloat,
                                    -kLeastFloat,
                                    kLargestFloat,
                                    -kLargestFloat,
                                    std::nextafter(-kLargestFloat, 0.0f),
                                    kNever,    // no radius at all
                                    -kNever};  // all of them
  while (thresholds.size() < 5000) thresholds.push_back(any_float(random));
  const torch::Tensor wanted = doubles(thresholds);
  for (const RadiusRange range : kRanges) {
    int questions = 0;
    const torch::Tensor found =
        smallest_radius(wanted.size(0), torch::kCPU, range, [&](const torch::Tensor& radius) {
          ++questions;
          EXPECT_EQ(radius.scalar_type(), torch::kFloat);
          EXPECT_TRUE(radius.isfinite().all().item<bool>());
          EXPECT_TRUE((radius >= smallest_of(range)).all().item<bool>());
          return radius >= wanted;
        });
    EXPECT_EQ(questions, range == RadiusRange::kSigned ? 32 : 31);
    EXPECT_TRUE(torch::equal(found, wanted.clamp_min(smallest_of(range))));
  }
}

TEST(RadiusBelow, IsTheLargestFloatThatIsNotAbove) {
  Random random(2);
  std::vector<double> asked = extremes();
  while (asked.size() < 5000) asked.push_back(any_float(random) * (1 + 1e-9 * random.normal()));
  for (const RadiusRange range : kRanges) {
    const RadiusBelow below = radius_below(doubles(asked), range);
    for (size_t i = 0; i < asked.size(); ++i) {
      const auto row = static_cast<int64_t>(i);
      const bool exists = asked[i] >= smallest_of(range);
      ASSERT_EQ(below.exists[row].item<bool>(), exists) << asked[i];
      const auto found = below.radius[row].item<float>();
      if (!exists) {
        ASSERT_EQ(found, smallest_of(range)) << asked[i];
        continue;
      }
      ASSERT_LE(found, asked[i]);
      if (found == kLargestFloat) continue;
      ASSERT_GT(std::nextafter(found, kLargestFloat), asked[i]);
    }
  }
}

// Holds or not at each radius by the toss of a coin that belongs to row and radius.
class Coins {
 public:
  Coins(int64_t rows, uint64_t seed) : rows_(rows), seed_(seed) {}

  torch::Tensor at(const torch::Tensor& radius) const {
    torch::Tensor result = torch::empty({rows_}, torch::kBool);
    const torch::Tensor asked = radius.contiguous();
    for (int64_t row = 0; row < rows_; ++row) {
      const auto bits = std::bit_cast<uint32_t>(asked.data_ptr<float>()[row]);
      constexpr double kChances[] = {0, 0.05, 0.3, 0.5, 0.7, 0.95, 1};
      Random coin(seed_ + static_cast<uint64_t>(row) * 0x9e3779b97f4a7c15u + bits);
      result.data_ptr<bool>()[row] = coin.uniform() < kChances[row % 7];
    }
    return result;
  }

 private:
  int64_t rows_;
  uint64_t seed_;
};

// The rule of radius_search.h: which rows' search ends at most at the radius.
torch::Tensor by_the_path(const Coins& coins, const torch::Tensor& radius, RadiusRange range) {
  torch::Tensor result = torch::zeros({radius.size(0)}, torch::kBool);
  for (const PathStep& step : path_back(radius, range)) {
    const torch::Tensor holds = coins.at(step.radius);
    const torch::Tensor next =
        torch::where(step.within, holds.logical_or(result), holds.logical_and(result));
    result = torch::where(step.active, next, result);
    EXPECT_TRUE((step.radius <= radius)
                    .eq(step.within)
                    .logical_or(step.active.logical_not())
                    .all()
                    .item<bool>());
  }
  return result;
}

TEST(PathBack, DecidesWhereTheBisectionEnds) {
  constexpr int64_t kRows = 140;
  for (const RadiusRange range : kRanges) {
    Random random(3);
    int64_t early = 0, late = 0;
    for (uint64_t repeat = 0; repeat < 6; ++repeat) {
      const Coins coins(kRows, 1000 * repeat);
      const torch::Tensor found = smallest_radius(
          kRows, torch::kCPU, range, [&](const torch::Tensor& at) { return coins.at(at); });
      const torch::Tensor lowest = torch::full({kRows}, -kNever, torch::kFloat);
      const torch::Tensor single = found.to(torch::kFloat);
      std::vector<double> anything;
      for (int64_t i = 0; i < kRows; ++i) anything.push_back(any_float(random));
      for (const torch::Tensor& radius :
           {found, torch::nextafter(single, lowest).to(torch::kDouble),
            torch::nextafter(single, -lowest).to(torch::kDouble), doubles(anything),
            torch::full({kRows}, kNever, torch::kDouble),
            torch::full({kRows}, -kNever, torch::kDouble)}) {
        // A radius of +∞ is above every radius the search looks at, but not above "none".
        const torch::Tensor expected = (found <= radius).logical_and(found < kNever);
        EXPECT_TRUE(torch::equal(by_the_path(coins, radius, range), expected));
        early += expected.sum().item<int64_t>();
        late += kRows - expected.sum().item<int64_t>();
      }
    }
    EXPECT_GT(early, 500);
    EXPECT_GT(late, 500);
  }
}

}  // namespace
}  // namespace fcp
