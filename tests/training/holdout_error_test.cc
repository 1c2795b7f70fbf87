#include "fcp/training/holdout_error.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "fcp/training/training_data.h"

#include "tests/training/training_examples.h"

namespace fcp {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(HoldoutErrorTest, ErrorsInTheUnitOfTheTarget) {
  const torch::Tensor y = torch::tensor({0.0f, 2.0f, 4.0f, 6.0f}).view({4, 1});
  const HoldoutError error = holdout_error(Loss::kMse, y + 3, y);
  EXPECT_EQ(error.rows, 4);
  EXPECT_THAT(error.rmse, ElementsAre(testing::DoubleNear(3, 1e-6)));
  EXPECT_THAT(error.mae, ElementsAre(testing::DoubleNear(3, 1e-6)));
  EXPECT_THAT(error.deviation, ElementsAre(testing::DoubleNear(std::sqrt(5), 1e-6)));
  EXPECT_THAT(training_warnings(error, {}, 10),
              ElementsAre(HasSubstr("target 0 (from 0) is predicted no better than by its mean")));
  EXPECT_THAT(training_warnings(error, {}, 10, {"price"}),
              ElementsAre(HasSubstr("'price' is predicted no better than by its mean")));
  EXPECT_THAT(training_warnings(holdout_error(Loss::kMse, y + 1, y), {}, 10), IsEmpty());
}

// A weight of two is the row twice.
TEST(HoldoutError, CountsRowsByTheirWeights) {
  const torch::Tensor y = torch::tensor({1.0F, 2.0F, 4.0F}).view({3, 1});
  const torch::Tensor found = torch::tensor({1.5F, 1.0F, 6.0F}).view({3, 1});
  const torch::Tensor weight = torch::tensor({1.0F, 2.0F, 1.0F});
  const torch::Tensor twice = torch::tensor({0, 1, 1, 2}, torch::kLong);
  const auto repeated = [&](const torch::Tensor& rows) { return rows.index_select(0, twice); };
  const HoldoutError by_weight = holdout_error(Loss::kMse, found, y, weight);
  const HoldoutError by_rows = holdout_error(Loss::kMse, repeated(found), repeated(y));
  EXPECT_NEAR(by_weight.rmse[0], by_rows.rmse[0], 1e-12);
  EXPECT_NEAR(by_weight.mae[0], by_rows.mae[0], 1e-12);
  EXPECT_NEAR(by_weight.deviation[0], by_rows.deviation[0], 1e-12);
  const torch::Tensor logits = torch::tensor({2.0F, 1.0F, 0.0F, 1.0F, 3.0F, 1.0F}).view({3, 2});
  const torch::Tensor labels = torch::tensor({0.0F, 1.0F, 1.0F}).view({3, 1});
  const HoldoutError weighted = holdout_error(Loss::kCrossEntropy, logits, labels, weight);
  EXPECT_NEAR(weighted.accuracy, 0.75, 1e-12) << "the last row is wrong";
  EXPECT_NEAR(weighted.majority, 0.75, 1e-12);
  const torch::Tensor errors = torch::tensor({1.0F, -5.0F, 2.0F, 3.0F});
  EXPECT_DOUBLE_EQ(residual_length(errors, torch::tensor({1.0F, 1.0F, 1.0F, 1.0F})), 10);
  EXPECT_DOUBLE_EQ(residual_length(errors, torch::tensor({1.0F, 0.1F, 1.0F, 1.0F})), 6);
}

TEST(HoldoutErrorTest, LabelsAndQuantiles) {
  const torch::Tensor labels = torch::tensor({0.0f, 1.0f, 1.0f, 1.0f}).view({4, 1});
  const torch::Tensor logits = torch::tensor({1.0f, 0.0f, 0.0f, 1.0f, 1.0f, 0.0f, 0.0f, 1.0f});
  const HoldoutError error = holdout_error(Loss::kCrossEntropy, logits.view({4, 2}), labels);
  EXPECT_DOUBLE_EQ(error.accuracy, 0.75);
  EXPECT_DOUBLE_EQ(error.majority, 0.75);
  EXPECT_THAT(training_warnings(error, {}, 10), ElementsAre(HasSubstr("most frequent")));
  const torch::Tensor both = torch::tensor({0.0f, 2.0f, 5.0f, 6.0f}).view({2, 2});
  const HoldoutError quantile =
      holdout_error(Loss::kQuantile, both, torch::tensor({1.0f, 1.0f}).view({2, 1}));
  EXPECT_DOUBLE_EQ(quantile.coverage, 0.5);
  EXPECT_DOUBLE_EQ(quantile.length, 1.5);
}

TEST(HoldoutErrorTest, SaysWhenTheLossWasStillFalling) {
  FitCurve falling, flat;
  for (int i = 0; i < 20; ++i) {
    falling.holdout_loss.push_back(1.0 / (1 + i));
    flat.holdout_loss.push_back(1);
  }
  const std::vector<FitCurve> two_of_three{falling, falling, flat},
      one_of_three{falling, flat, flat};
  EXPECT_THAT(training_warnings({}, two_of_three, 20), ElementsAre(HasSubstr("still falling")));
  EXPECT_THAT(training_warnings({}, one_of_three, 20), IsEmpty());
  EXPECT_THAT(training_warnings({}, two_of_three, 30), IsEmpty()) << "they ran out of patience";
}

TEST(TargetScalingTest, StandardisesEachTarget) {
  Array y = zeros({4, 2});
  y.values = {1000, 5, 1001, 5, 1002, 5, 1003, 5};
  const TargetScaling scaling = fit_target_scaling(y);
  EXPECT_DOUBLE_EQ(scaling.mean[0], 1001.5);
  EXPECT_DOUBLE_EQ(scaling.deviation[1], 1) << "it does not vary";
  const torch::Tensor scaled = scale_targets(scaling, y);
  EXPECT_NEAR(scaled.select(1, 0).square().mean().item<double>(), 1, 1e-6);
  EXPECT_EQ(scaled.select(1, 1).abs().max().item<double>(), 0);
}

// √(π/2) = 1.2533 for normal values; 100,000 of them are off by less than 0.02.
TEST(TargetScalingTest, TailWeightTellsHeavyTails) {
  Array y = normal_array(100000, 1, 1);
  EXPECT_NEAR(tail_weight(y), 1.2533, 0.02);
  for (float& value : y.values) value = std::exp(2 * value);
  EXPECT_GT(tail_weight(y), kHeavyTail);
}

}  // namespace
}  // namespace fcp
