#include "fcp/training/tree_members.h"

#include <cmath>
#include <limits>
#include <set>

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/nn/graph/cut.h"
#include "fcp/nn/runtime/network.h"
#include "fcp/training/cross_fit.h"
#include "fcp/training/heads_graph.h"
#include "fcp/training/tabular.h"

#include "tests/training/training_examples.h"

namespace fcp {
namespace {

constexpr float kAbsent = std::numeric_limits<float>::quiet_NaN();

// Networks that learn little, so that trees have something to say.
TabularOptions weak() {
  TabularOptions options;
  options.members = 3;
  options.layers = {16, 8};
  options.epochs = 6;
  options.trees = true;
  return options;
}

// Jumps, which networks of few epochs smear.
double stairs(std::span<const float> row) {
  return std::floor(2 * row[0]) + (row[1] > 0.5 ? 3 : 0) + (row[2] < -0.3 ? row[0] : 0);
}

double fresh_rmse(const Graph& graph, const Array& x, const Array& y) {
  const torch::NoGradGuard no_gradients;
  const torch::Tensor found = Network(graph).forward(tensor_of(x));
  return (found - tensor_of(y)).square().mean().sqrt().item<double>();
}

class TreeMembersTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_boost()) GTEST_SKIP() << "built without XGBoost";
  }
};

TEST_F(TreeMembersTest, LearnJumps) {
  const Array x = normal_array(1000, 3, 1), fresh = normal_array(500, 3, 2);
  const Array y = column_of(x, stairs), truth = column_of(fresh, stairs);
  TabularOptions options = weak();
  const TabularResult mixed = train_tabular(x, y, options);
  ASSERT_EQ(mixed.tree_share.size(), 1u);
  EXPECT_GT(mixed.tree_share[0], 0.5);
  options.trees = false;
  const TabularResult networks = train_tabular(x, y, options);
  EXPECT_TRUE(networks.tree_share.empty());
  EXPECT_LT(fresh_rmse(mixed.graph, fresh, truth), 0.6 * fresh_rmse(networks.graph, fresh, truth));
  // What is said of unseen rows is honest.
  EXPECT_NEAR(mixed.error.rmse[0], fresh_rmse(mixed.graph, fresh, truth), 0.15);
}

// Networks come half trained, and are trained on where the trees leave them weight.
TEST_F(TreeMembersTest, NetworksAreTrainedOnWhereTheyCount) {
  const Array x = normal_array(600, 3, 1), y = column_of(x, stairs);
  const torch::Tensor truth = tensor_of(y), nothing = torch::zeros_like(truth);
  const std::vector<FitRows> rows = deal_rows(600, 3, 0.2, 1);
  const TreeData data{.x = x, .y = truth, .weight = {}, .categories = {}};
  int trained = 0;
  const auto train_on = [&] {
    ++trained;
    return truth;
  };
  const TreeMemberOptions options{.seed = 1, .train_on = train_on};
  EXPECT_GT(fit_tree_members(data, rows, nothing, options).share.at(0), 0.9);
  EXPECT_EQ(trained, 0) << "trees win by far";
  const torch::Tensor noisy = truth + 0.1 * torch::sin(1000 * tensor_of(x).narrow(1, 0, 1));
  EXPECT_THAT(fit_tree_members(data, rows, noisy, options).share, testing::ElementsAre(0.0));
  EXPECT_EQ(trained, 1);
  // Too few rows for trees.
  const Array few = normal_array(30, 3, 1), few_y = column_of(few, stairs);
  const TreeData small{.x = few, .y = tensor_of(few_y), .weight = {}, .categories = {}};
  EXPECT_FALSE(fit_tree_members(small, deal_rows(30, 3, 0.2, 1), tensor_of(few_y), options).used());
  EXPECT_EQ(trained, 2) << "networks alone are trained to the end";
}

// The same by the whole recipe, whose curves and progress tell of one or two cycles.
TEST_F(TreeMembersTest, TheSecondCycleOfNetworksIsForThoseThatCount) {
  const Array x = normal_array(400, 3, 1);
  const Array stripes = column_of(x, [](std::span<const float> row) {
    return static_cast<int>(std::floor(2 * row[0])) % 2 == 0 ? 1.0 : 0.0;
  });
  const Array line =
      column_of(x, [](std::span<const float> row) { return 3.0 * row[0] - 2 * row[1]; });
  const auto most_epochs = [&](const Array& y, int64_t width) {
    TabularOptions options = weak();
    options.epochs = 0;
    options.layers = {width};
    int64_t step = 0, steps = 0;
    const TabularResult trained = train_tabular(x, y, options, [&](const EnsembleStep& now) {
      EXPECT_EQ(now.step, step + 1);
      EXPECT_LE(now.step, now.steps);
      step = now.step;
      steps = now.steps;
    });
    size_t most = 0;
    for (const FitCurve& curve : trained.curves) most = std::max(most, curve.holdout_loss.size());
    EXPECT_LE(static_cast<int64_t>(most), trained.epochs);
    EXPECT_GE(steps, step);
    return std::pair(static_cast<int64_t>(most), trained.epochs);
  };
  const auto [one_cycle, all] = most_epochs(stripes, 2);
  EXPECT_LE(one_cycle, (all + 2) / 3);
  EXPECT_GT(most_epochs(line, 16).first, (all + 2) / 3);
}

TEST_F(TreeMembersTest, OfNoUseAreNotWritten) {
  const Array x = normal_array(600, 2, 1);
  Random random(4);
  const Array y = column_of(x, [&](std::span<const float>) { return random.normal(); });
  TreeMembers none;
  none.share = {0.0};
  EXPECT_FALSE(none.used());
  // Networks that know all leave nothing to the trees.
  const std::vector<FitRows> rows = deal_rows(600, 3, 0.2, 1);
  const TreeData data{.x = x, .y = tensor_of(y), .weight = {}, .categories = {}};
  const TreeMembers made = fit_tree_members(data, rows, tensor_of(y), {.seed = 1});
  EXPECT_THAT(made.share, testing::ElementsAre(0.0));
  EXPECT_FALSE(made.used());
}

// Networks of weight 0 whose features nobody reads are left out, and the answer is the trees'.
TEST_F(TreeMembersTest, NetworksOfNoUseAreLeftOut) {
  const Array x = normal_array(1000, 3, 1);
  const Array y = column_of(x, stairs);
  TabularOptions options = weak();
  options.epochs = 1;
  options.rate = 1e-6;
  const TabularResult trained = train_tabular(x, y, options);
  ASSERT_THAT(trained.tree_share, testing::ElementsAre(1.0));
  for (const Node& node : trained.graph.nodes) EXPECT_NE(node.op, "Relu");
  EXPECT_LT(trained.error.rmse[0], 0.5);
  options.heads = true;
  bool relu = false;
  for (const Node& node : train_tabular(x, y, options).graph.nodes) relu |= node.op == "Relu";
  EXPECT_TRUE(relu) << "heads read the networks' features";
}

TEST_F(TreeMembersTest, FeaturesSeparateTheGraphAndTheAnswerIsAffineInThem) {
  const torch::NoGradGuard no_gradients;
  const Array x = normal_array(400, 3, 1);
  Array y = zeros({400, 2});
  for (size_t i = 0; i < 400; ++i) {
    y.values[2 * i] = static_cast<float>(100 + 5 * stairs(x.row(i)));
    y.values[2 * i + 1] = x.values[3 * i];
  }
  TabularOptions options = weak();
  options.heads = true;
  TabularResult trained = train_tabular(x, y, options);
  ASSERT_EQ(trained.tree_share.size(), 2u);
  EXPECT_THAT(valid_cuts(trained.graph), testing::Contains("features"));
  const auto parts = cut(trained.graph, "features");
  const torch::Tensor features = Network(parts.backbone).forward(tensor_of(x));
  // Of each member 8 of the network, and of both targets an answer, a spread and a difference.
  ASSERT_EQ(features.size(1), 3 * (8 + 3 * 2));
  const Network head(parts.head);
  const torch::Tensor a = features.narrow(0, 0, 200), b = features.narrow(0, 200, 200);
  EXPECT_LT(largest_difference(head.forward((a + b) / 2), (head.forward(a) + head.forward(b)) / 2),
            1e-3);
  // Each member's block makes its own answer.
  for (size_t e = 0; e < 3; ++e) {
    const UnseenRows& member = trained.members[e];
    const torch::Tensor indices = torch::tensor(member.rows, torch::kLong);
    EXPECT_LT(largest_difference(
                  features.narrow(1, 14 * static_cast<int64_t>(e), 14).index_select(0, indices),
                  member.features),
              1e-5);
    const torch::Tensor networks = member.features.narrow(1, 0, 8);
    EXPECT_TRUE((member.features.narrow(1, 12, 2) >= 0).all().item<bool>()) << "disagreement";
    EXPECT_GT(networks.abs().max().item<float>(), 0);
  }
  ASSERT_TRUE(add_heads(y, {.seed = 5}, trained));
  // The answers, their spreads, quantiles and factors.
  EXPECT_EQ(Network(trained.graph).outputs().size(), 4u);
}

// Statistics of a member are of the targets that it learns from.
TEST_F(TreeMembersTest, StatisticsDoNotKnowTheTargetsOfUnseenRows) {
  Array x = zeros({300, 6});
  const Array noise = normal_array(300, 1, 1);
  Random random(2);
  for (size_t i = 0; i < 300; ++i) {
    x.values[6 * i] = noise.values[i];
    x.values[6 * i + 1 + i % 5] = 1;
  }
  const std::vector<FitRows> rows = deal_rows(300, 3, 0.2, 1);
  Array y = column_of(x, [&](std::span<const float> row) { return row[1] + random.normal(); });
  const auto answers = [&] {
    const TreeData data{
        .x = x, .y = tensor_of(y), .weight = {}, .categories = {{.first = 1, .count = 5}}};
    return fit_tree_members(data, rows, torch::zeros({300, 1}), {.seed = 1});
  };
  const TreeMembers before = answers();
  const auto own = static_cast<size_t>(rows[1].holdout[0]);
  y.values[own] += 1e-3f;
  const TreeMembers after = answers();
  EXPECT_TRUE(torch::equal(before.statistics[1].levels, after.statistics[1].levels));
  EXPECT_FALSE(torch::equal(before.statistics[0].levels, after.statistics[0].levels));
}

// A category of 40 levels, each with a mean of its own.
// A level's rows are one group each, whose targets must not tell its own statistic: where groups
// are dealt to inner folds as a whole, every row of a group has the statistic of no rows.
TEST_F(TreeMembersTest, StatisticsKeepGroupsTogether) {
  Array x = zeros({300, 6});
  std::vector<int64_t> groups;
  for (size_t i = 0; i < 300; ++i) {
    x.values[6 * i] = static_cast<float>(i);
    x.values[6 * i + 1 + i % 5] = 1;
    groups.push_back(static_cast<int64_t>(i % 5));
  }
  const Array y = column_of(x, [](std::span<const float> row) { return row[1] - row[2]; });
  std::vector<FitRows> rows(1);
  for (int64_t i = 0; i < 300; ++i) (i < 240 ? rows[0].training : rows[0].holdout).push_back(i);
  const auto trees_of = [&](const std::vector<int64_t>* together) {
    const TreeData data{.x = x,
                        .y = tensor_of(y),
                        .weight = {},
                        .categories = {{.first = 1, .count = 5}},
                        .groups = together};
    return fit_tree_members(data, rows, torch::zeros({300, 1}), {.seed = 1, .rounds = 20});
  };
  // A tree that splits by a statistic has a feature beyond the six columns.
  const auto reads_statistics = [](const TreeMembers& made) {
    for (const Tree& tree : made.answers.trees) {
      for (const TreeNode& node : tree) {
        if (node.feature >= 6) return true;
      }
    }
    return false;
  };
  EXPECT_TRUE(reads_statistics(trees_of(nullptr)));
  EXPECT_FALSE(reads_statistics(trees_of(&groups))) << "the statistic is the same for all rows";
}

// By weight: heavy rows of a level decide its statistic.
TEST_F(TreeMembersTest, StatisticsCountByWeight) {
  Array x = zeros({200, 4});
  Array y = zeros({200, 1});
  torch::Tensor weight = torch::ones({200});
  for (size_t i = 0; i < 200; ++i) {
    x.values[4 * i] = static_cast<float>(i);
    x.values[4 * i + 1 + i % 3] = 1;
    const bool heavy = i % 2 == 0;
    y.values[i] = heavy ? 1.0F : 0.0F;
    if (heavy) weight[static_cast<int64_t>(i)] = 3.0;
  }
  std::vector<FitRows> rows(1);
  for (int64_t i = 0; i < 200; ++i) (i < 150 ? rows[0].training : rows[0].holdout).push_back(i);
  const auto statistic = [&](const torch::Tensor& weights) {
    const TreeData data{.x = x,
                        .y = tensor_of(y),
                        .weight = {},
                        .categories = {{.first = 1, .count = 3}},
                        .row_weight = weights};
    const TreeMembers made =
        fit_tree_members(data, rows, torch::zeros({200, 1}), {.seed = 1, .rounds = 5});
    const CategoryStatistics& found = made.statistics.at(0);
    return (found.levels[0][0] + found.mean[0]).item<double>();
  };
  // 25 rows of 1 and 25 of 0 in the first level; a prior of ten rows at the plain mean of 1/2.
  EXPECT_NEAR(statistic({}), 0.5, 1e-6);
  EXPECT_NEAR(statistic(weight), (25 * 3 + 10 * 0.5) / (25 * 3 + 25 + 10), 1e-6);
}

TEST_F(TreeMembersTest, ReadCategoriesByStatistics) {
  constexpr int64_t kLevels = 40;
  Random random(6);
  std::vector<double> means;
  for (int64_t l = 0; l < kLevels; ++l) means.push_back(3 * random.normal());
  const auto table = [&](int64_t rows) {
    std::pair<Array, Array> made{zeros({rows, kLevels + 1}), zeros({rows, 1})};
    for (int64_t i = 0; i < rows; ++i) {
      const auto level = static_cast<int64_t>(random.below(kLevels + 1));
      const size_t first = static_cast<size_t>(i * (kLevels + 1));
      made.first.values[first] = static_cast<float>(random.normal());
      if (level < kLevels) made.first.values[first + 1 + static_cast<size_t>(level)] = 1;
      const double mean = level < kLevels ? means[static_cast<size_t>(level)] : 0;  // unknown
      made.second.values[static_cast<size_t>(i)] = static_cast<float>(mean + 0.3 * random.normal());
    }
    return made;
  };
  const auto [x, y] = table(1500);
  const auto [fresh, truth] = table(500);
  TabularOptions options = weak();
  options.categories = {{.first = 1, .count = kLevels}};
  const TabularResult trained = train_tabular(x, y, options);
  EXPECT_GT(trained.tree_share.at(0), 0.5);
  EXPECT_LT(fresh_rmse(trained.graph, fresh, truth), 0.6);  // deviation of y: 3
  EXPECT_NEAR(trained.error.rmse[0], fresh_rmse(trained.graph, fresh, truth), 0.1);
}

TEST_F(TreeMembersTest, ReadMissingValues) {
  Array x = normal_array(800, 2, 1);
  Random random(2);
  const Array y = column_of(x, [](std::span<const float> row) { return row[0]; });
  Array gaps = x;
  for (size_t i = 0; i < 800; ++i) {
    if (y.values[i] > 1) gaps.values[2 * i] = kAbsent;
  }
  const TabularResult trained = train_tabular(gaps, y, weak());
  EXPECT_GT(trained.tree_share.at(0), 0);
  const torch::NoGradGuard no_gradients;
  const torch::Tensor row = torch::tensor({kAbsent, 0.0f}).view({1, 2});
  EXPECT_NEAR(Network(trained.graph).forward(row).item<double>(), 1.5, 0.4);  // E[x | x > 1]
}

// What happens on weekends alone.
TEST_F(TreeMembersTest, ReadTheCalendarOfDates) {
  Random random(2);
  Array x = zeros({700, 2}), y = zeros({700, 1});
  for (size_t i = 0; i < 700; ++i) {
    const double day = static_cast<double>(random.below(4000));
    x.values[2 * i] = static_cast<float>(random.normal());
    x.values[2 * i + 1] = static_cast<float>(day);
    y.values[i] = std::fmod(day, 7) < 2 ? 5 : 0;  // Saturday and Sunday
  }
  TabularOptions options = weak();
  options.epochs = 30;
  for (const bool trees : {true, false}) {
    options.trees = trees;
    options.dates = {};
    const double without = train_tabular(x, y, options).error.rmse[0];
    options.dates = {1};
    const double with = train_tabular(x, y, options).error.rmse[0];
    EXPECT_GT(without, 2);  // deviation: 2.3
    EXPECT_LT(with, 0.8);
  }
}

TEST_F(TreeMembersTest, LearnClasses) {
  const Array x = normal_array(900, 2, 1), fresh = normal_array(400, 2, 2);
  for (const int64_t classes : {2, 3}) {
    const auto label = [&](std::span<const float> row) {
      return (row[0] > 0 ? 1 : 0) + (classes == 3 && row[1] > 0.5 ? 1 : 0);
    };
    const Array y = column_of(x, label), truth = column_of(fresh, label);
    TabularOptions options = weak();
    options.loss = Loss::kCrossEntropy;
    options.classes = classes;
    options.epochs = 2;
    const TabularResult trained = train_tabular(x, y, options);
    ASSERT_EQ(trained.tree_share.size(), 1u);
    EXPECT_GT(trained.tree_share[0], 0.5);
    const torch::NoGradGuard no_gradients;
    const torch::Tensor found = Network(trained.graph).forward(tensor_of(fresh)).argmax(1);
    const torch::Tensor right = found == tensor_of(truth).flatten().to(torch::kLong);
    EXPECT_GT(right.to(torch::kFloat).mean().item<double>(), 0.95) << classes;
  }
}

TEST_F(TreeMembersTest, CrossFittingHasTrees) {
  const Array x = normal_array(300, 3, 1);
  Array y = column_of(x, stairs);
  TabularOptions options = weak();
  options.members = 2;
  const CrossFit fitted = train_crossed(x, y, options, 3);
  EXPECT_FALSE(fitted.tree_share.empty());
  EXPECT_EQ(fitted.graph.domains.count("ai.onnx.ml"), 1u);
  // A row's own answer does not move the ensemble that it is judged by.
  y.values[17] += 1;
  const CrossFit again = train_crossed(x, y, options, 3);
  const auto place = std::find(fitted.calibrating.begin(), fitted.calibrating.end(), 17u) -
                     fitted.calibrating.begin();
  ASSERT_LT(place, static_cast<int64_t>(fitted.calibrating.size()));
  EXPECT_EQ(again.out_of_fold[place].item<float>(), fitted.out_of_fold[place].item<float>());
  EXPECT_FALSE(again.out_of_fold.equal(fitted.out_of_fold));
}

// 3,000 columns: the first booster chooses among them, and what it costs is bounded.
TEST_F(TreeMembersTest, WideTablesTakeFewColumns) {
  const Array x = normal_array(300, 3000, 1);
  const Array y =
      column_of(x, [](std::span<const float> row) { return row[7] > 0 ? 4.0 : row[2999]; });
  const TreeData data{.x = x, .y = tensor_of(y), .weight = {}, .categories = {}};
  const TreeMembers made =
      fit_tree_members(data, deal_rows(300, 2, 0.2, 1), torch::zeros({300, 1}), {.seed = 1});
  ASSERT_TRUE(made.used());
  std::set<int64_t> read;
  for (const Tree& tree : made.answers.trees) {
    for (const TreeNode& node : tree) {
      if (node.feature >= 0) read.insert(node.feature);
    }
  }
  EXPECT_THAT(read, testing::Contains(7));
  EXPECT_LT(read.size(), 600u);
}

TEST_F(TreeMembersTest, BitsDoNotDependOnTheThreadCount) {
  const Array x = normal_array(300, 3, 1);
  const Array y = column_of(x, stairs);
  const TreeData data{.x = x, .y = tensor_of(y), .weight = {}, .categories = {}};
  const auto trees = [&](int threads) {
    const int before = at::get_num_threads();
    at::set_num_threads(threads);
    const TreeMembers made = fit_tree_members(data, deal_rows(300, 3, 0.2, 1),
                                              torch::zeros({300, 1}), {.heads = true, .seed = 3});
    at::set_num_threads(before);
    return made;
  };
  const TreeMembers one = trees(1), three = trees(3);
  EXPECT_TRUE(torch::equal(one.out_of_fold, three.out_of_fold));
  ASSERT_EQ(one.spreads.trees.size(), three.spreads.trees.size());
  EXPECT_GT(one.spreads.trees.size(), 0u);
  for (size_t t = 0; t < one.spreads.trees.size(); ++t) {
    for (size_t i = 0; i < one.spreads.trees[t].size(); ++i) {
      EXPECT_EQ(one.spreads.trees[t][i].number, three.spreads.trees[t][i].number);
    }
  }
}

}  // namespace
}  // namespace fcp
