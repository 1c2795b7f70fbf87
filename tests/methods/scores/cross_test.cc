#include "fcp/methods/scores/cross.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/random.h"
#include "fcp/conformal/cross_guarantee.h"
#include "fcp/conformal/quantile.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/nn/runtime/network.h"

namespace fcp {
namespace {

// A head whose features are the outputs themselves: prediction, then n lower and n upper ends.
std::shared_ptr<const Network> pass_on(int64_t n) {
  Graph graph;
  graph.inputs = {{.name = "v", .shape = {kDynamic, 1 + 2 * n}, .dimension_names = {"b", ""}}};
  graph.initializers["lengths"] = torch::tensor({int64_t{1}, n, n}, torch::kLong);
  graph.nodes = {{.name = "split",
                  .op = "Split",
                  .domain = "",
                  .inputs = {"v", "lengths"},
                  .outputs = {"prediction", kCrossLowOutput, kCrossHighOutput},
                  .attributes = {{"axis", int64_t{1}}}}};
  for (const auto& [name, width] : {std::pair<const char*, int64_t>("prediction", 1),
                                    std::pair<const char*, int64_t>(kCrossLowOutput, n),
                                    std::pair<const char*, int64_t>(kCrossHighOutput, n)}) {
    graph.outputs.push_back(
        {.name = name, .shape = {kDynamic, width}, .dimension_names = {"b", ""}});
  }
  return std::make_shared<Network>(graph);
}

ScoreOptions cross_options() {
  ScoreOptions options(CrossOptions::kName);
  options.output = "prediction";
  return options;
}

// Whole numbers, so that ends are equal often.
torch::Tensor ends_of(Random& random, int64_t rows, int64_t n) {
  std::vector<float> values;
  for (int64_t i = 0; i < rows; ++i) {
    std::vector<float> low, high;
    for (int64_t j = 0; j < n; ++j) {
      const auto center = static_cast<float>(random.below(9));
      const auto residual = static_cast<float>(random.below(5));
      low.push_back(center - residual);
      high.push_back(center + residual);
    }
    values.push_back(4);
    values.insert(values.end(), low.begin(), low.end());
    values.insert(values.end(), high.begin(), high.end());
  }
  return torch::tensor(values, torch::kFloat).view({rows, 1 + 2 * n});
}

TEST(Cross, ObeysTheLawAndEqualsTheDefinition) {
  Random random(11);
  for (const int64_t n : {1, 2, 7, 30}) {
    const auto score = make_score(cross_options(), pass_on(n));
    constexpr int64_t kRows = 6;
    const torch::Tensor v = ends_of(random, kRows, n);
    const auto ends = v.accessor<float, 2>();
    for (double k = 0; k <= static_cast<double>(n) + 2; k += 0.5) {
      const Regions regions = score->region(v, k);
      for (double y = -6; y <= 14; y += 0.5) {
        const std::vector<double> scores =
            score->score(v, torch::full({kRows, 1}, y, torch::kDouble));
        for (int64_t row = 0; row < kRows; ++row) {
          // The definition, one pair of ends after the other.
          int64_t above = 0, below = 0;
          for (int64_t i = 0; i < n; ++i) {
            above += ends[row][1 + i] > y;
            below += ends[row][1 + n + i] < y;
          }
          EXPECT_EQ(scores[static_cast<size_t>(row)],
                    1 + static_cast<double>(std::max(above, below)));
          const bool inside = regions.lower[row][0].item<double>() <= y &&
                              y <= regions.upper[row][0].item<double>();
          EXPECT_EQ(inside, scores[static_cast<size_t>(row)] <= k) << "n " << n << ", k " << k;
        }
      }
    }
  }
}

// A head whose features are the outputs themselves: C logits, then n · C margins.
std::shared_ptr<const Network> pass_labels_on(int64_t n, int64_t classes) {
  Graph graph;
  graph.inputs = {
      {.name = "v", .shape = {kDynamic, (1 + n) * classes}, .dimension_names = {"b", ""}}};
  graph.initializers["lengths"] = torch::tensor({classes, n * classes}, torch::kLong);
  graph.nodes = {{.name = "split",
                  .op = "Split",
                  .domain = "",
                  .inputs = {"v", "lengths"},
                  .outputs = {"logits", kCrossMarginsOutput},
                  .attributes = {{"axis", int64_t{1}}}}};
  graph.outputs = {{.name = "logits", .shape = {kDynamic, classes}, .dimension_names = {"b", ""}},
                   {.name = kCrossMarginsOutput,
                    .shape = {kDynamic, n * classes},
                    .dimension_names = {"b", ""}}};
  return std::make_shared<Network>(graph);
}

std::unique_ptr<Score> label_score(int64_t n, int64_t classes) {
  ScoreOptions options = CrossLabelsOptions{.allow_empty = true};
  return make_score(options, pass_labels_on(n, classes));
}

TEST(CrossLabels, ObeysTheLawAndEqualsTheDefinition) {
  Random random(12);
  constexpr int64_t kRows = 5, kClasses = 3;
  for (const int64_t n : {1, 4, 20}) {
    const auto score = label_score(n, kClasses);
    EXPECT_EQ(score->classes(), kClasses);
    std::vector<float> values;
    for (int64_t i = 0; i < kRows * (1 + n) * kClasses; ++i) {
      values.push_back(static_cast<float>(random.below(5)) - 2);  // 0 often: equal is not above
    }
    const torch::Tensor v = torch::tensor(values).view({kRows, (1 + n) * kClasses});
    const auto numbers = v.accessor<float, 2>();
    for (int64_t label = 0; label < kClasses; ++label) {
      const std::vector<double> scores =
          score->score(v, torch::full({kRows, 1}, static_cast<double>(label), torch::kDouble));
      for (int64_t row = 0; row < kRows; ++row) {
        int64_t above = 0;
        for (int64_t i = 0; i < n; ++i) above += numbers[row][(1 + i) * kClasses + label] > 0;
        EXPECT_EQ(scores[static_cast<size_t>(row)], 1 + static_cast<double>(above));
        for (double k = 0; k <= static_cast<double>(n) + 2; k += 0.5) {
          const Regions regions = score->region(v, k);
          EXPECT_EQ(regions.members[row][label].item<bool>(),
                    scores[static_cast<size_t>(row)] <= k);
        }
      }
    }
  }
}

TEST(CrossLabels, TheAnswerIsInEverySet) {
  // Logits 0, 2, 1; both margins of the answer, label 1, are above 0, so that its own score is 3.
  const torch::Tensor v = torch::tensor({{0.f, 2.f, 1.f, -1.f, 1.f, 1.f, -1.f, 1.f, -1.f}});
  const auto pure = label_score(2, 3);
  const auto score = make_score(CrossLabelsOptions{}, pass_labels_on(2, 3));
  const torch::Tensor answer = torch::ones({1, 1}, torch::kDouble);
  EXPECT_EQ(pure->score(v, answer)[0], 3);
  EXPECT_EQ(score->score(v, answer)[0], 0);
  EXPECT_TRUE(torch::equal(pure->region(v, 1).members, torch::tensor({{true, false, false}})));
  EXPECT_TRUE(torch::equal(score->region(v, 1).members, torch::tensor({{true, true, false}})));
}

TEST(CrossLabels, NanIsNotANumber) {
  const auto score = label_score(2, 2);
  torch::Tensor v = torch::ones({1, 6});
  EXPECT_EQ(score->score(v, torch::zeros({1, 1}, torch::kDouble))[0], 3);
  v[0][4] = std::nanf("");
  EXPECT_TRUE(std::isnan(score->score(v, torch::zeros({1, 1}, torch::kDouble))[0]));
}

TEST(Cross, NanIsNotANumber) {
  const auto score = make_score(cross_options(), pass_on(2));
  torch::Tensor v = torch::tensor({0.f, -1.f, -2.f, 1.f, 2.f}).view({1, 5});
  EXPECT_EQ(score->score(v, torch::zeros({1, 1}, torch::kDouble))[0], 1);
  v[0][3] = std::nanf("");
  EXPECT_TRUE(std::isnan(score->score(v, torch::zeros({1, 1}, torch::kDouble))[0]));
}

// Coverage over 500 draws of n rows, by 100 new rows each, with the mean of the other folds as the
// network: a stable one, so that coverage is near 1 − α. A draw's share of covered rows lies in
// [0, 1] with a variance below 0.09 / n + 0.09 / 100 < 0.003; by Bernstein's inequality the mean of
// 500 is farther than 0.03 from its expectation with a probability below
// 2 exp(−500 · 0.03² / (2 · (0.003 + 0.03 / 3))) < 1e-7. The rank of 50 rows alone lifts the
// expectation to 46/51 = 0.902.
TEST(Cross, CoversOverDraws) {
  for (const int64_t n : {50, 100, 300}) {
    Random random(static_cast<uint64_t>(n));
    const auto score = make_score(cross_options(), pass_on(n));
    constexpr int64_t kDraws = 500, kFresh = 100, kFolds = 10;
    const auto radius = static_cast<double>(conformal_rank(Level(0.1), static_cast<size_t>(n)));
    double covered = 0;
    for (int64_t draw = 0; draw < kDraws; ++draw) {
      std::vector<double> y(static_cast<size_t>(n));
      double sum = 0;
      for (double& value : y) sum += value = random.normal();
      std::vector<float> row(static_cast<size_t>(1 + 2 * n), 0);
      for (int64_t i = 0; i < n; ++i) {
        double own = 0, count = 0;
        for (int64_t j = i % kFolds; j < n; j += kFolds) {
          own += y[static_cast<size_t>(j)];
          ++count;
        }
        const double mean = (sum - own) / (static_cast<double>(n) - count);
        const double residual = std::abs(y[static_cast<size_t>(i)] - mean);
        row[static_cast<size_t>(1 + i)] = static_cast<float>(mean - residual);
        row[static_cast<size_t>(1 + n + i)] = static_cast<float>(mean + residual);
      }
      const torch::Tensor v = torch::tensor(row, torch::kFloat).view({1, 1 + 2 * n});
      const Regions region = score->region(v, radius);
      const double low = region.lower.item<double>(), high = region.upper.item<double>();
      for (int64_t i = 0; i < kFresh; ++i) {
        const double fresh = random.normal();
        covered += low <= fresh && fresh <= high;
      }
    }
    EXPECT_NEAR(covered / (kDraws * kFresh), 0.905, 0.035) << n;
  }
}

// The guarantee itself, for a network as unstable as they come: the answer of the nearest row of
// the other folds, where answers do not depend on x at all. A draw's share of 20 covered rows has a
// variance of at most 1/4; by Bernstein's inequality the mean of 2000 draws lies 0.07 below its
// expectation with a probability below exp(−2000 · 0.07² / (2 · (0.25 + 0.07 / 3))) < 1e-7.
TEST(Cross, KeepsItsGuaranteeWithAnUnstableNetwork) {
  constexpr int64_t kRows = 20, kFolds = 10, kDraws = 2000, kFresh = 20;
  Random random(8);
  const auto score = make_score(cross_options(), pass_on(kRows));
  const auto radius = static_cast<double>(conformal_rank(Level(0.2), kRows));
  double covered = 0;
  for (int64_t draw = 0; draw < kDraws; ++draw) {
    std::vector<double> x(kRows), y(kRows);
    for (double& value : x) value = random.normal();
    for (double& value : y) value = random.normal();
    const auto nearest = [&](double at, int64_t without) {
      double best = 0, least = 1e9;
      for (int64_t j = 0; j < kRows; ++j) {
        const double distance = std::abs(x[static_cast<size_t>(j)] - at);
        if (j % kFolds == without || distance >= least) continue;
        least = distance;
        best = y[static_cast<size_t>(j)];
      }
      return best;
    };
    std::vector<float> rows;
    std::vector<double> truth;
    for (int64_t fresh = 0; fresh < kFresh; ++fresh) {
      const double at = random.normal();
      truth.push_back(random.normal());
      std::vector<float> low, high;
      for (int64_t i = 0; i < kRows; ++i) {
        const auto row = static_cast<size_t>(i);
        const double residual = std::abs(y[row] - nearest(x[row], i % kFolds));
        const double answer = nearest(at, i % kFolds);
        low.push_back(static_cast<float>(answer - residual));
        high.push_back(static_cast<float>(answer + residual));
      }
      rows.push_back(0);
      rows.insert(rows.end(), low.begin(), low.end());
      rows.insert(rows.end(), high.begin(), high.end());
    }
    const torch::Tensor v = torch::tensor(rows, torch::kFloat).view({kFresh, 1 + 2 * kRows});
    const torch::Tensor y_fresh = torch::tensor(truth, torch::kDouble).view({kFresh, 1});
    for (const double found : score->score(v, y_fresh)) covered += found <= radius;
  }
  EXPECT_GT(covered / (kDraws * kFresh), cross_guarantee(Level(0.2), kRows, kFolds) - 0.07);
}

}  // namespace
}  // namespace fcp
