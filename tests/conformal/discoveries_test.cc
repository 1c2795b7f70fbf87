#include "fcp/discoveries.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/conformal/p_value.h"

namespace fcp {
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
