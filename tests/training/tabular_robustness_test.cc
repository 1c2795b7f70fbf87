// Tables as they come: each trains to a sensible network, or an Error says in one line why not.
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/nn/runtime/network.h"
#include "fcp/training/tabular.h"

#include "tests/training/training_examples.h"

namespace fcp {
namespace {

constexpr float kGap = std::numeric_limits<float>::quiet_NaN();

TabularOptions small_recipe() {
  TabularOptions options;
  options.members = 2;
  options.layers = {32, 16};
  options.epochs = 60;
  return options;
}

double slope(std::span<const float> row) { return 2 * row[0] - row[1]; }

// The share of the target's variance that out-of-fold predictions explain.
double explained(const TabularResult& trained) {
  const double ratio = trained.error.rmse[0] / trained.error.deviation[0];
  return 1 - ratio * ratio;
}

// y = scale · (2x₀ − x₁) + offset on so many rows, with x changed by `change`.
TabularResult train_on(int64_t rows, int64_t columns, double scale, double offset,
                       const std::function<void(Array&)>& change = {}) {
  Array x = normal_array(rows, columns, 1);
  const Array y =
      column_of(x, [&](std::span<const float> row) { return offset + scale * slope(row); });
  if (change) change(x);
  const TabularResult trained = train_tabular(x, y, small_recipe());
  const torch::NoGradGuard no_gradients;
  EXPECT_TRUE(Network(trained.graph).forward(tensor_of(x)).isfinite().all().item<bool>());
  return trained;
}

TEST(TabularRobustnessTest, ALargeMeanAndASmallDeviation) {
  EXPECT_GT(explained(train_on(600, 3, 0.45, 1000)), 0.9);
}

TEST(TabularRobustnessTest, AMillionTimesTheScale) {
  EXPECT_GT(explained(train_on(600, 3, 1e6, 0)), 0.9);
  EXPECT_GT(explained(train_on(600, 3, 1e-6, 0)), 0.9);
}

TEST(TabularRobustnessTest, AHeavyTail) {
  const Array x = normal_array(800, 3, 1);
  const Array y =
      column_of(x, [](std::span<const float> row) { return std::exp(1.5 * slope(row) / 2); });
  const TabularResult trained = train_tabular(x, y, small_recipe());
  EXPECT_GT(explained(trained), 0.2);
  EXPECT_LT(trained.error.mae[0], 0.6 * trained.error.deviation[0]);
}

TEST(TabularRobustnessTest, FewRows) {
  EXPECT_GT(explained(train_on(300, 3, 1, 0)), 0.9);
  EXPECT_GT(explained(train_on(10, 1 + 1, 1, 0)), -10);
  try {
    train_on(5, 3, 1, 0);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("found 5 rows to train on, expected at least 10"));
  }
}

TEST(TabularRobustnessTest, ConstantColumnsAndAColumnOfOneCategory) {
  const TabularResult trained = train_on(400, 5, 1, 0, [](Array& x) {
    for (size_t i = 0; i < x.rows(); ++i) {
      x.values[5 * i + 2] = 7;       // a number that never changes
      x.values[5 * i + 3] = 1;       // one category, one-hot
      x.values[5 * i + 4] = -1e30f;  // and a huge one
    }
  });
  EXPECT_GT(explained(trained), 0.9);
}

TEST(TabularRobustnessTest, AThousandColumns) {
  EXPECT_GT(explained(train_on(800, 1000, 1, 0)), 0.2);
}

// The target depends on x₀ and, where x₁ is missing, on that alone.
TEST(TabularRobustnessTest, MissingValuesAreASignal) {
  Array x = normal_array(1000, 2, 1), y = zeros({1000, 1});
  for (size_t i = 0; i < 1000; ++i) {
    const bool missing = i % 10 != 0;  // 90 %
    y.values[i] = x.values[2 * i] + (missing ? 3.0f : 0.0f);
    if (missing) x.values[2 * i + 1] = kGap;
  }
  EXPECT_GT(explained(train_tabular(x, y, small_recipe())), 0.9);
}

TEST(TabularRobustnessTest, MostValuesMissing) {
  const TabularResult trained = train_on(1500, 3, 1, 0, [](Array& x) {
    Random random(4);
    for (float& value : x.values) {
      if (random.uniform() < 0.9) value = kGap;
    }
  });
  EXPECT_GT(explained(trained), 0.02);  // a tenth of what there is to see: 8 % at best
  EXPECT_LT(explained(trained), 0.2);
}

TEST(TabularRobustnessTest, WhatCannotBeLearnedIsSaid) {
  const Array x = normal_array(50, 2, 1);
  const auto message = [&](const Array& features, const Array& y) -> std::string {
    try {
      train_tabular(features, y, small_recipe());
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message(x, zeros({50, 1})), testing::HasSubstr("nothing to learn"));
  Array y = normal_array(50, 1, 2);
  y.values[7] = kGap;
  EXPECT_THAT(message(x, y), testing::HasSubstr("target of row 7"));
  Array infinite = x;
  infinite.values[3] = std::numeric_limits<float>::infinity();
  EXPECT_THAT(message(infinite, normal_array(50, 1, 2)), testing::HasSubstr("row 1, column 1"));
}

}  // namespace
}  // namespace fcp
