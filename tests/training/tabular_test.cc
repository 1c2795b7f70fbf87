#include "fcp/training/tabular.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/runtime/network.h"

#include "tests/training/training_examples.h"

namespace fcp {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::Not;

// Small enough for a test: the recipe is the same.
TabularOptions quick() {
  TabularOptions options;
  options.members = 3;
  options.layers = {32, 32, 16};
  options.epochs = 40;
  return options;
}

double wavy(std::span<const float> row) { return std::sin(3 * row[0]) + row[1] * row[1]; }

double rmse_on(const Graph& graph, const Array& x, const Array& y) {
  const torch::NoGradGuard no_gradients;
  const torch::Tensor found = Network(graph).forward(tensor_of(x));
  return (found - tensor_of(y)).square().mean().sqrt().item<double>();
}

TEST(TabularTest, LearnsABentFunction) {
  const Array x = normal_array(800, 3, 1), fresh = normal_array(500, 3, 2);
  const TabularResult trained = train_tabular(x, column_of(x, wavy), quick());
  EXPECT_LT(rmse_on(trained.graph, fresh, column_of(fresh, wavy)), 0.7);  // deviation of y: 1.6
  EXPECT_NEAR(trained.error.rmse[0], rmse_on(trained.graph, fresh, column_of(fresh, wavy)), 0.3);
  EXPECT_EQ(trained.error.rows, 800);
  EXPECT_EQ(trained.centre, Centre::kMean);
  EXPECT_GT(trained.seconds, 0);
}

TEST(TabularTest, EachMemberKeepsWhatItSaysOfUnseenRows) {
  const torch::NoGradGuard no_gradients;
  const Array x = normal_array(100, 3, 1);
  TabularOptions options = quick();
  options.epochs = 3;
  const TabularResult trained = train_tabular(x, column_of(x, wavy), options);
  ASSERT_EQ(trained.members.size(), 3u);
  const torch::Tensor features =
      Network(cut(trained.graph, "features").backbone).forward(tensor_of(x));
  ASSERT_EQ(features.size(1), 3 * 16);
  std::vector<int64_t> seen;
  for (size_t e = 0; e < 3; ++e) {
    const UnseenRows& member = trained.members[e];
    seen.insert(seen.end(), member.rows.begin(), member.rows.end());
    const torch::Tensor indices = torch::tensor(member.rows, torch::kLong);
    const torch::Tensor own =
        features.narrow(1, 16 * static_cast<int64_t>(e), 16).index_select(0, indices);
    EXPECT_LT(largest_difference(member.features, own), 1e-6);
    EXPECT_LT(largest_difference(trained.out_of_fold.index_select(0, indices), member.predictions),
              1e-6);
  }
  std::sort(seen.begin(), seen.end());
  for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(seen[static_cast<size_t>(i)], i);
}

// A member that saw a row with an absurd target would know it.
TEST(TabularTest, NoMemberSeesItsOwnFold) {
  const std::vector<FitRows> dealt = deal_rows(11, 3, 0.2, 1);
  for (const FitRows& member : dealt) {
    EXPECT_EQ(member.training.size() + member.holdout.size(), 11u);
    for (const int64_t row : member.holdout) {
      EXPECT_EQ(std::count(member.training.begin(), member.training.end(), row), 0);
    }
  }
  const std::vector<FitRows> single = deal_rows(10, 1, 0.2, 1);
  EXPECT_EQ(single[0].holdout.size(), 2u);
  EXPECT_EQ(single[0].training.size(), 8u);
}

// Groups of 1 to 7 rows: none is on both sides of a member, and each row is held out once.
TEST(TabularTest, GroupsAreInOneFold) {
  std::vector<int64_t> groups;
  for (int64_t group = 0; group < 20; ++group) groups.insert(groups.end(), 1 + group % 7, group);
  const auto rows = static_cast<int64_t>(groups.size());
  for (const int64_t members : {1, 3}) {
    std::vector<int64_t> seen;
    for (const FitRows& member : deal_rows(rows, members, 0.2, 1, groups)) {
      seen.insert(seen.end(), member.holdout.begin(), member.holdout.end());
      EXPECT_EQ(member.training.size() + member.holdout.size(), groups.size());
      EXPECT_GE(member.holdout.size(), groups.size() / 5);
      for (const int64_t held : member.holdout) {
        for (const int64_t learned : member.training) {
          EXPECT_NE(groups[static_cast<size_t>(held)], groups[static_cast<size_t>(learned)]);
        }
      }
    }
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end());
    if (members > 1) {
      EXPECT_EQ(seen.size(), groups.size());
    }
  }
  const std::vector<int64_t> two = {0, 0, 0, 1, 1, 1};
  EXPECT_THROW(deal_rows(6, 3, 0.2, 1, two), Error);
}

TEST(TabularTest, TheMeanOfMembersIsThePrediction) {
  const torch::NoGradGuard no_gradients;
  const Array x = normal_array(60, 2, 1);
  TabularOptions options = quick();
  options.epochs = 3;
  options.members = 1;
  const TabularResult single = train_tabular(x, column_of(x, wavy), options);
  // A single member predicts its unseen rows as the graph does; the others are NaN.
  const torch::Tensor all = Network(single.graph).forward(tensor_of(x));
  const torch::Tensor indices = torch::tensor(single.members[0].rows, torch::kLong);
  EXPECT_LT(largest_difference(all.index_select(0, indices), single.members[0].predictions), 1e-5);
  EXPECT_EQ(single.out_of_fold.isnan().sum().item<int64_t>(), 60 - 12);
}

// One row in twenty is far off, at 50 on average, whatever x is: the mean is 2.5 and the median
// about 0, from where nine rows in ten are at most 0.3 away.
TEST(TabularTest, AHeavyTailIsCentredByItsMedianWhereThatIsShorter) {
  const Array x = normal_array(1500, 2, 1);
  Array y = normal_array(1500, 1, 2);
  Random random(3);
  for (float& value : y.values) {
    value *= 0.1f;
    if (random.uniform() < 0.05) value += static_cast<float>(100 * random.uniform());
  }
  TabularOptions options = quick();
  options.epochs = 15;
  const TabularResult chosen = train_tabular(x, y, options);
  EXPECT_EQ(chosen.centre, Centre::kMedian);
  EXPECT_THAT(chosen.warnings, testing::Contains(HasSubstr("no better than by its mean")));
  options.centre = Centre::kMean;
  const TabularResult mean = train_tabular(x, y, options);
  EXPECT_EQ(mean.centre, Centre::kMean);
  const torch::Tensor fresh = tensor_of(normal_array(500, 2, 3));
  const torch::NoGradGuard no_gradients;
  EXPECT_NEAR(Network(chosen.graph).forward(fresh).mean().item<double>(), 0, 0.7);
  EXPECT_GT(Network(mean.graph).forward(fresh).mean().item<double>(), 1);
}

TEST(TabularTest, LearnsSeveralTargetsInTheirUnits) {
  const Array x = normal_array(600, 2, 1);
  Array y = zeros({600, 2});
  for (size_t i = 0; i < 600; ++i) {
    y.values[2 * i] = 1000 + x.values[2 * i];
    y.values[2 * i + 1] = 1e6f * x.values[2 * i + 1];
  }
  const TabularResult trained = train_tabular(x, y, quick());
  ASSERT_EQ(trained.error.rmse.size(), 2u);
  EXPECT_LT(trained.error.rmse[0], 0.3);
  EXPECT_LT(trained.error.rmse[1], 0.3e6);
}

TEST(TabularTest, LearnsQuantiles) {
  Random random(3);
  Array x = zeros({2000, 1}), y = zeros({2000, 1});
  for (size_t i = 0; i < 2000; ++i) {
    x.values[i] = static_cast<float>(i % 2);
    y.values[i] = (1 + x.values[i]) * static_cast<float>(random.uniform());
  }
  TabularOptions options = quick();
  options.loss = Loss::kQuantile;
  const TabularResult trained = train_tabular(x, y, options);
  const Tensors outputs = Network(trained.graph).run({torch::tensor({0.0f, 1.0f}).view({2, 1})});
  for (int64_t i = 0; i < 2; ++i) {
    const double size = static_cast<double>(1 + i);
    EXPECT_NEAR(outputs[0][i][0].item<double>() / size, 0.05, 0.08);
    EXPECT_NEAR(outputs[1][i][0].item<double>() / size, 0.95, 0.08);
  }
  EXPECT_NEAR(trained.error.coverage, 0.9, 0.06);
  EXPECT_EQ(trained.out_of_fold.size(1), 2);
}

TEST(TabularTest, LearnsClasses) {
  const Array x = normal_array(800, 2, 1);
  const Array labels = column_of(
      x, [](std::span<const float> row) { return (row[0] > 0 ? 1 : 0) + (row[1] > 0 ? 2 : 0); });
  TabularOptions options = quick();
  options.loss = Loss::kCrossEntropy;
  options.classes = 5;
  const TabularResult trained = train_tabular(x, labels, options);
  EXPECT_EQ(trained.graph.outputs[0].name, "logits");
  EXPECT_EQ(trained.graph.outputs[0].shape[1], 5);
  EXPECT_GT(trained.error.accuracy, 0.9);
  EXPECT_THAT(trained.warnings, Each(Not(HasSubstr("no better")))) << "40 epochs may be few";
}

// Nothing but the weights tells two kinds of rows apart: y is 1 for three quarters of the rows and
// -1 for the rest, x means nothing, and the rest has nine times the weight.
struct WeightedRows {
  Array x = normal_array(600, 1, 4), y;
  std::vector<double> weights;

  explicit WeightedRows(float common, float heavy) : y(zeros({600, 1})) {
    for (size_t i = 0; i < 600; ++i) {
      const bool is_heavy = i % 4 == 0;
      y.values[i] = is_heavy ? heavy : common;
      weights.push_back(is_heavy ? 90 : 10);
    }
  }
};

double mean_answer(const Graph& graph, const Array& x) {
  const torch::NoGradGuard no_gradients;
  return Network(graph).forward(tensor_of(x)).mean(0)[0].item<double>();
}

// The heavy quarter has 3/4 of the weight.
TEST(TabularTest, RowsCountByTheirWeights) {
  const WeightedRows rows(1, -1);
  for (const bool trees : {false, true}) {
    TabularOptions options = quick();
    options.trees = trees;
    options.epochs = 20;
    options.centre = Centre::kMean;
    EXPECT_NEAR(mean_answer(train_tabular(rows.x, rows.y, options).graph, rows.x), 0.5, 0.1);
    options.row_weights = rows.weights;
    const TabularResult weighted = train_tabular(rows.x, rows.y, options);
    EXPECT_NEAR(mean_answer(weighted.graph, rows.x), -0.5, 0.1) << "trees " << trees;
    EXPECT_NEAR(weighted.error.deviation[0], std::sqrt(1 - 0.25), 1e-6) << "of weighted rows";
    options.centre = Centre::kMedian;
    const TabularResult median = train_tabular(rows.x, rows.y, options);
    EXPECT_NEAR(mean_answer(median.graph, rows.x), -1, 0.15) << "trees " << trees;
    EXPECT_NEAR(median.error.mae[0], 0.5, 0.1) << "a quarter of the weight is off by 2";
  }
}

TEST(TabularTest, ClassesCountByTheirWeights) {
  const WeightedRows rows(0, 1);
  for (const bool trees : {false, true}) {
    TabularOptions options = quick();
    options.loss = Loss::kCrossEntropy;
    options.trees = trees;
    options.epochs = 20;
    EXPECT_NEAR(train_tabular(rows.x, rows.y, options).error.accuracy, 0.75, 1e-9);
    options.row_weights = rows.weights;
    const TabularResult weighted = train_tabular(rows.x, rows.y, options);
    const torch::NoGradGuard no_gradients;
    const torch::Tensor shares =
        torch::softmax(Network(weighted.graph).forward(tensor_of(rows.x)), 1).mean(0);
    EXPECT_NEAR(shares[1].item<double>(), 0.75, 0.08) << "trees " << trees;
    EXPECT_NEAR(weighted.error.accuracy, 0.75, 1e-6) << "all are called heavy";
    EXPECT_NEAR(weighted.error.majority, 0.75, 1e-6);
  }
}

// 100 times the weight is no weight at all.
TEST(TabularTest, TheUnitOfWeightsMeansNothing) {
  const Array x = normal_array(200, 2, 1);
  TabularOptions options = quick();
  options.epochs = 5;
  options.trees = true;
  options.row_weights.assign(200, 1);
  const TabularResult one = train_tabular(x, column_of(x, wavy), options);
  options.row_weights.assign(200, 128);
  const TabularResult many = train_tabular(x, column_of(x, wavy), options);
  EXPECT_TRUE(torch::equal(one.out_of_fold, many.out_of_fold));
  options.row_weights[7] = 0;
  EXPECT_THAT([&] { train_tabular(x, column_of(x, wavy), options); },
              testing::ThrowsMessage<Error>(HasSubstr("the weight of row 7 (from 0) is 0")));
  options.row_weights.pop_back();
  EXPECT_THROW(train_tabular(x, column_of(x, wavy), options), Error);
}

TEST(TabularTest, SameSeedSameBits) {
  const Array x = normal_array(100, 2, 1);
  TabularOptions options = quick();
  options.epochs = 3;
  const Array y = column_of(x, wavy);
  const auto weights = [&] { return train_tabular(x, y, options).graph.initializers; };
  const auto first = weights(), second = weights();
  for (const auto& [name, tensor] : first) EXPECT_TRUE(torch::equal(tensor, second.at(name)));
  options.seed = 1;
  EXPECT_FALSE(torch::equal(first.at("answer.weight"), weights().at("answer.weight")));
}

std::string tabular_error(const TabularOptions& options) {
  try {
    const Array x = normal_array(20, 2, 1);
    train_tabular(x, column_of(x, wavy), options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(TabularTest, WrongOptionsAreErrors) {
  EXPECT_THAT(tabular_error({.members = 0}), HasSubstr("0 members"));
  EXPECT_THAT(tabular_error({.members = 11}), HasSubstr("expected at least 22"));
  EXPECT_THAT(tabular_error({.layers = {}}), HasSubstr("no hidden layer"));
  EXPECT_THAT(tabular_error({.dropout = 1}), HasSubstr("dropout 1"));
  EXPECT_THAT(tabular_error({.rate = -1}), HasSubstr("learning rate -1"));
  EXPECT_THAT(tabular_error({.epochs = -1}), HasSubstr("-1 epochs"));
  EXPECT_THAT(tabular_error({.classes = 3}), HasSubstr("for cross-entropy"));
  EXPECT_THAT(tabular_error({.weights = {1, 2}}), HasSubstr("found 2 weights"));
}

}  // namespace
}  // namespace fcp
