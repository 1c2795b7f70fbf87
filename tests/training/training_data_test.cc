#include "fcp/training/training_data.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/runtime/network.h"
#include "fcp/training/heads_graph.h"
#include "fcp/training/tabular.h"

#include "tests/training/training_examples.h"

namespace fcp {
namespace {

using testing::HasSubstr;

std::string message_of(const Array& x, const Array& y, Loss loss = Loss::kMse) {
  try {
    prepare_training_data(x, y, loss, true);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(TrainingDataTest, StandardisesXAndDividesY) {
  Array x = normal_array(50, 2, 1);
  for (size_t i = 0; i < 50; ++i) {
    x.values[2 * i] = 1000 + 7 * x.values[2 * i];
    x.values[2 * i + 1] = 3;  // constant: moved to 0, not divided
  }
  const Array y = normal_array(50, 1, 2);
  const TrainingData data = prepare_training_data(x, y, Loss::kMse, true);
  double sum = 0, squares = 0, sizes = 0;
  for (size_t i = 0; i < 50; ++i) {
    sum += data.x[2 * i];
    squares += data.x[2 * i] * data.x[2 * i];
    sizes += std::abs(data.y[i]);
    EXPECT_EQ(data.x[2 * i + 1], 0);
    EXPECT_NEAR(data.y[i] * data.scaling.target, y.values[i], 1e-6);
  }
  EXPECT_NEAR(sum / 50, 0, 1e-4);
  EXPECT_NEAR(squares / 50, 1, 1e-4);
  EXPECT_NEAR(sizes / 50, 1, 1e-5);
}

TEST(TrainingDataTest, LeavesLabelsAndUnscaledDataAlone) {
  const Array x = normal_array(10, 2, 1);
  const Array labels{{10}, {0, 1, 2, 0, 1, 2, 0, 1, 2, 5}};
  EXPECT_EQ(prepare_training_data(x, labels, Loss::kCrossEntropy, true).y, labels.values);
  const TrainingData raw = prepare_training_data(x, labels, Loss::kMse, false);
  EXPECT_EQ(raw.x, x.values);
  EXPECT_EQ(raw.y, labels.values);
  EXPECT_TRUE(raw.scaling.empty());
}

TEST(TrainingDataTest, NamesWhatIsWrong) {
  const Array x = normal_array(12, 3, 1), y = normal_array(12, 1, 2);
  EXPECT_EQ(message_of(x, y), "no error");
  EXPECT_EQ(message_of(normal_array(9, 3, 1), normal_array(9, 1, 2)),
            "found 9 rows to train on, expected at least 10");
  EXPECT_THAT(message_of(x, normal_array(11, 1, 2)), HasSubstr("12 rows of features and 11"));
  EXPECT_THAT(message_of(zeros({12, 2, 2}), y), HasSubstr("features of shape [12, 2, 2]"));

  Array wrong = x;
  wrong.values[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(message_of(wrong, y),
            "feature of row 2, column 1 (from 0) is nan, expected a finite number");
  wrong = y;
  wrong.values[4] = -std::numeric_limits<float>::infinity();
  EXPECT_THAT(message_of(x, wrong), HasSubstr("target of row 4, column 0 (from 0) is -inf"));
  EXPECT_EQ(message_of(x, zeros({12, 1})),
            "the target is 0 in all 12 rows: there is nothing to learn");
  wrong = x;
  for (size_t i = 0; i < 12; ++i) wrong.values[3 * i + 1] = i == 5 ? 3e38f : -3e38f;
  EXPECT_EQ(message_of(wrong, y), "feature of row 5, column 1 (from 0) is too large for float32");
}

TEST(TrainingDataTest, NamesWrongLabels) {
  const Array x = normal_array(10, 2, 1);
  Array labels{{10, 1}, {0, 1, 2, 0, 1, 2, 0, 1, 2, 3}};
  EXPECT_EQ(message_of(x, labels, Loss::kCrossEntropy), "no error");
  labels.values[3] = 1.5;
  EXPECT_EQ(message_of(x, labels, Loss::kCrossEntropy),
            "label of row 3 (from 0) is 1.5, expected a whole number from 0");
  labels.values[3] = -1;
  EXPECT_THAT(message_of(x, labels, Loss::kCrossEntropy), HasSubstr("is -1"));
  labels.values = std::vector<float>(10, 2.0f);
  EXPECT_THAT(message_of(x, labels, Loss::kCrossEntropy), HasSubstr("nothing to learn"));
  EXPECT_THAT(message_of(x, normal_array(10, 2, 1), Loss::kCrossEntropy),
              HasSubstr("found 2 target columns"));
}

}  // namespace
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
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Array exact_column(const std::vector<double>& values) {
  Array y = zeros({static_cast<int64_t>(values.size()), 1});
  y.values.assign(values.begin(), values.end());
  y.exact = values;
  return y;
}

TEST(TargetOffset, IsTakenWhereFloatsAreTooCoarse) {
  EXPECT_THAT(target_offsets(exact_column({1e9 - 3, 1e9, 1e9 + 3})), ElementsAre(1e9));
  EXPECT_THAT(target_offsets(exact_column({-1e9 - 3, -1e9 + 3})), ElementsAre(-1e9));
  EXPECT_THAT(target_offsets(exact_column({2001, 2010, 2024})), IsEmpty()) << "years";
  EXPECT_THAT(target_offsets(exact_column({0, 1e9, 3e9})), IsEmpty()) << "a large spread";
  EXPECT_THAT(target_offsets(exact_column({1e9, 1e9})), IsEmpty()) << "no spread at all";
  Array plain = exact_column({1e9 - 3, 1e9 + 3});
  plain.exact.clear();
  EXPECT_THAT(target_offsets(plain), IsEmpty()) << "what was rounded cannot be had back";
  Array both = zeros({2, 2});
  both.exact = {1, 1e9 - 3.25, 2, 1e9 + 3.25};
  const std::vector<double> offsets = target_offsets(both);
  EXPECT_THAT(offsets, ElementsAre(0, 1e9));
  EXPECT_THAT(less_offsets(both, offsets).values, ElementsAre(1, -3.25F, 2, 3.25F));
}

TEST(TargetOffset, TheGraphAddsIt) {
  const torch::NoGradGuard no_gradients;
  const Array x = normal_array(200, 2, 1);
  const Array y = column_of(x, [](std::span<const float> row) { return 3 * row[0]; });
  TabularOptions options;
  options.members = 2;
  options.layers = {16};
  options.epochs = 5;
  TabularResult trained = train_tabular(x, y, options);
  ASSERT_TRUE(add_heads(y, options, trained));
  const Tensors all_before = Network(trained.graph).run({tensor_of(x)});
  add_offsets(trained.graph, {1e9});
  const Network network(trained.graph);
  const Tensors all_after = network.run({tensor_of(x)});
  EXPECT_EQ(all_after[0].scalar_type(), torch::kDouble);
  EXPECT_TRUE(torch::equal(all_after[0], all_before[0].to(torch::kDouble) + 1e9))
      << "to the last bit";
  for (size_t i = 1; i < all_before.size(); ++i) {
    EXPECT_TRUE(torch::equal(all_after[i], all_before[i])) << "heads are about residuals";
  }
  EXPECT_NO_THROW(cut(trained.graph, "features"));
}

}  // namespace
}  // namespace fcp
