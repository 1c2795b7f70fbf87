#include "fcp/training/target_scale.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/runtime/network.h"
#include "fcp/training/tabular.h"
#include "fcp/training/tabular_heads.h"
#include "fcp/training/target_scaling.h"

#include "tests/training/training_examples.h"

namespace fcp {
namespace {

// A price: what is bought, times noise of 20 %.
Array prices(const Array& x, uint64_t seed) {
  Random random(seed);
  return column_of(x, [&](std::span<const float> row) {
    return 1000 * std::exp(1.2 * row[0] + (row[1] > 0 ? 1 : 0) + 0.2 * random.normal());
  });
}

Array sums(const Array& x, uint64_t seed) {
  Random random(seed);
  return column_of(x, [&](std::span<const float> row) {
    return 100 + 5 * row[0] + (row[1] > 0 ? 8 : 0) + random.normal();
  });
}

TEST(TargetScaleTest, NoiseThatGrowsWithTheValueTakesTheLogarithm) {
  if (!can_boost()) GTEST_SKIP() << "built without XGBoost";
  const Array x = normal_array(1500, 2, 1);
  EXPECT_TRUE(prefers_log(x, prices(x, 2), {}, 1));
  EXPECT_FALSE(prefers_log(x, sums(x, 2), {}, 1));
}

TEST(TargetScaleTest, LogarithmsNeedOneTargetWithoutNegatives) {
  Array y = normal_array(300, 1, 1);
  EXPECT_FALSE(log_shift(y).has_value());
  for (float& value : y.values) value = std::abs(value);
  EXPECT_EQ(log_shift(y), 0.0);
  y.values[7] = 0;
  EXPECT_GT(log_shift(y).value(), 0);
  EXPECT_FALSE(log_shift(normal_array(10, 2, 1)).has_value());
  const TargetScaling scaling = fit_log_scaling(y, 0.1);
  const torch::Tensor scaled = scale_targets(scaling, y);
  for (int64_t i = 0; i < 300; ++i) {
    EXPECT_NEAR(unscaled(scaling, scaled[i][0].item<double>()), y.values[static_cast<size_t>(i)],
                1e-4);
  }
  EXPECT_LT(unscaled(scaling, 1e6), 100) << "answers are kept near what was seen";
  TabularOptions options;
  options.target_scale = TargetScale::kLog;
  const Array x = normal_array(300, 2, 1);
  EXPECT_THROW(train_tabular(x, normal_array(300, 1, 1), options), Error);
}

TEST(TargetScaleTest, TheGraphAnswersInTheTargetsUnit) {
  const torch::NoGradGuard no_gradients;
  const Array x = normal_array(1000, 2, 1), fresh = normal_array(400, 2, 5);
  const Array truth = prices(fresh, 6);
  for (const bool trees : {false, true}) {
    TabularOptions options;
    options.members = 2;
    options.layers = {16, 8};
    options.epochs = 30;
    options.target_scale = TargetScale::kLog;
    options.trees = trees;
    options.heads = true;
    const Array y = prices(x, 2);
    TabularResult trained = train_tabular(x, y, options);
    EXPECT_TRUE(trained.log_target);
    ASSERT_TRUE(add_heads(y, {.seed = 5}, trained));
    EXPECT_THAT(valid_cuts(trained.graph), testing::Contains("features"));
    const Tensors answers = Network(trained.graph).run({tensor_of(fresh)});
    const torch::Tensor ratio = (answers[0] / tensor_of(truth)).log();
    EXPECT_LT(ratio.abs().mean().item<double>(), 0.5);  // noise: 0.16, all of log y: 1.0
    // What members say of unseen rows is what the graph says, in the same unit.
    const torch::Tensor seen = (trained.out_of_fold / tensor_of(y)).log();
    EXPECT_LT(seen.abs().mean().item<double>(), 0.5);
    EXPECT_GT(answers[1].min().item<double>(), 0);
  }
}

}  // namespace
}  // namespace fcp
