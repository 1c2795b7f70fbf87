#include "fcp/data/scaling.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

namespace fcp {
namespace {

using testing::ElementsAre;

TEST(Standardiser, CentresAndScalesByThePopulationsDeviation) {
  const Array training{{4, 3},
                       {1, 0.1f, 1e6f, 3, 0.1f, 1e6f + 1, 5, 0.1f, 1e6f + 2, 7, 0.1f, 1e6f + 3}};
  const Standardiser fitted = fit_standardiser(training);
  EXPECT_DOUBLE_EQ(fitted.mean[0], 4);
  EXPECT_DOUBLE_EQ(fitted.deviation[0], std::sqrt(5.0));
  EXPECT_EQ(fitted.mean[1], 0.1f);
  EXPECT_EQ(fitted.deviation[1], 1) << "a constant column divides by 1";
  EXPECT_DOUBLE_EQ(fitted.mean[2], 1e6 + 1.5);
  EXPECT_DOUBLE_EQ(fitted.deviation[2], std::sqrt(1.25));

  const Array test = standardise(fitted, Array{{1, 3}, {9, 0.6f, 1e6f}});
  EXPECT_FLOAT_EQ(test.values[0], static_cast<float>(5 / std::sqrt(5.0)));
  EXPECT_FLOAT_EQ(test.values[1], 0.5f);
  EXPECT_FLOAT_EQ(test.values[2], static_cast<float>(-1.5 / std::sqrt(1.25)));
  EXPECT_THROW(standardise(fitted, Array{{1, 2}, {1, 2}}), Error);
  EXPECT_THROW(fit_standardiser(Array{{0, 2}, {}}), Error);
}

TEST(TargetScale, IsOneMeanOverAllOutputs) {
  const Array y{{2, 2}, {1, -2, 3, -4}};
  EXPECT_DOUBLE_EQ(target_scale(y), 2.5);
  EXPECT_THAT(divide(y, 2.5).values, ElementsAre(0.4f, -0.8f, 1.2f, -1.6f));
  EXPECT_EQ(target_scale(Array{{2, 1}, {0, 0}}), 1);
  EXPECT_THROW(target_scale(Array{}), Error);
}

}  // namespace
}  // namespace fcp
