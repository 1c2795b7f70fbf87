#include "fcp/methods/scores/each_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/methods/calibrations/calibration_table.h"
#include "fcp/methods/scores/score_table.h"

#include "tests/methods/scores/heads.h"

namespace fcp {
namespace {

// The head with output k alone: rows of its last layers. What a score of one output should see.
Graph one_output(Graph graph, int64_t outputs, int64_t k) {
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    TensorInfo& info = graph.outputs[i];
    const int64_t own = std::max<int64_t>(1, info.shape[1] / outputs);
    const std::string columns = info.name + "/own";
    graph.initializers[columns] = torch::arange(k * own, (k + 1) * own, torch::kLong);
    graph.nodes.push_back(
        make_node("Gather", {info.name, columns}, {info.name + "_one"}, {{"axis", int64_t{1}}}));
    for (Node& node : graph.nodes) {  // so that the output keeps its name
      for (auto* names : {&node.inputs, &node.outputs}) {
        for (std::string& name : *names) {
          if (name == info.name) name += "_all";
          if (name == info.name + "_one") name = info.name;
        }
      }
    }
    info.shape[1] = own;
  }
  return graph;
}

Graph each_graph(Random& random, int64_t outputs) {
  Graph graph = wild_head(random, outputs);
  add_linear_output(random, graph, kSpreadOutput, outputs, "Exp");
  add_linear_output(random, graph, kQuantilesOutput, outputs * 7, "");
  return graph;
}

const std::vector<ScoreOptions>& all_scores() {
  static const std::vector<ScoreOptions> kAll = {
      ResidualOptions{},
      ResidualOptions{.asymmetric = true},
      ScoreOptions(ResidualOptions{.normalize = kSpreadOutput}, {.output = "y"}),
      ScoreOptions(ResidualOptions{}, {.side = BoundSide::kUpper}),
      SpreadOptions{},
      SpreadOptions{.asymmetric = true},
      QuantilesOptions{},
      DensityOptions{}};
  return kAll;
}

// Its scores are those of each output by itself, and y_k ∈ region_k ⟺ score_k ≤ r_k, exactly.
TEST(EachOutput, IsTheScoreOfEachOutputAlone) {
  Random random(1);
  int pairs = 0;
  for (int i = 0; i < 12; ++i) {
    const int64_t outputs = 2 + i % 3;
    const Graph graph = each_graph(random, outputs);
    for (ScoreOptions options : all_scores()) {
      const auto alone = [&](int64_t k) {
        return make_score(options,
                          network_of(graph_for_score(one_output(graph, outputs, k), options)));
      };
      HeadRows made = wild_rows(random, *network_of(graph), 12);
      made.features = made.features.clamp(-3, 3);
      const auto first = alone(0);
      const int64_t own = first->sides();
      options.targets = static_cast<uint64_t>(outputs);
      const auto each = make_score(options, network_of(graph_for_score(graph, options)));
      options.targets = 0;
      ASSERT_EQ(each->targets(), outputs);
      ASSERT_EQ(each->sides(), outputs * own);
      const torch::Tensor scores =
          torch::tensor(each->score(made.features, made.truth), torch::kDouble)
              .reshape({12, outputs * own});
      torch::Tensor radius = scores.clone();  // some of each row's own, some a little below
      for (int64_t at = 0; at < radius.numel(); ++at) {
        double& one = radius.data_ptr<double>()[at];
        if (random.below(2) == 0) one = std::nextafter(one, -kForever);
        if (random.below(8) == 0) one = kForever;
      }
      const Regions regions = each->region(made.features, radius);
      for (int64_t k = 0; k < outputs; ++k) {
        const auto score = alone(k);
        const HeadRows column{made.features, made.truth.narrow(1, k, 1).contiguous()};
        const torch::Tensor found =
            torch::tensor(score->score(column.features, column.truth), torch::kDouble)
                .reshape({12, own});
        EXPECT_TRUE(found.equal(scores.narrow(1, k * own, own))) << options.name() << k;
        const torch::Tensor radii = radius.narrow(1, k * own, own).contiguous();
        const Regions one = score->region(column.features, radii);
        EXPECT_TRUE(one.lower.equal(regions.lower.narrow(1, k, 1))) << options.name() << k;
        EXPECT_TRUE(one.upper.equal(regions.upper.narrow(1, k, 1))) << options.name() << k;
        const torch::Tensor in = (regions.lower.narrow(1, k, 1) <= column.truth)
                                     .logical_and(column.truth <= regions.upper.narrow(1, k, 1));
        EXPECT_TRUE(in.squeeze(1).equal((found <= radii).all(1))) << options.name() << k;
        pairs += static_cast<int>(found.numel());
      }
    }
  }
  EXPECT_GT(pairs, 3000);
}

// Every target at α, its two sides at α/2 each.
TEST(EachOutput, EachTargetHasALevelOfItsOwn) {
  CalibrationScores rows;
  rows.sides = 4;
  rows.targets = 2;
  for (int i = 1; i <= 99; ++i) {
    rows.scores.insert(rows.scores.end(), {1.0 * i, -1.0 * i, 100.0 * i, 1000.0 * i});
  }
  const auto split = make_calibration(CalibrationOptions{}, rows);
  const TestInputs one{torch::zeros({1, 1}), {}, {}};
  const torch::Tensor radii = split->radii(one, Level(0.1));  // rank 95 of 99 at 0.05
  EXPECT_TRUE(radii.equal(torch::tensor({{95.0, -5.0, 9500.0, 95000.0}}, torch::kDouble)));
  // The first target is within both radii, the second one is not.
  const std::vector<double> p = split->p_values(one, std::vector<double>{95, -5, 9501, 1000});
  ASSERT_EQ(p.size(), 2U);
  EXPECT_GT(p[0], 0.1);
  EXPECT_LE(p[1], 0.1);
}

// In every calibration: a target is in at level α exactly where its p-value is above α.
TEST(EachOutput, EveryCalibrationTellsTargetsApart) {
  Random random(2);
  constexpr int64_t kRows = 60;
  CalibrationScores rows;
  rows.sides = 6;
  rows.targets = 3;
  rows.features = random_normal(random, {kRows, 2});
  rows.group_names = {"a", "b"};
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t side = 0; side < rows.sides; ++side) rows.scores.push_back(random.normal());
    rows.groups.push_back(i % 2);
    rows.weights.push_back(0.5 + random.uniform());
  }
  TestInputs fresh{random_normal(random, {20, 2}), {}, std::vector<double>(20, 1.0)};
  std::vector<double> scores;
  for (int i = 0; i < 20; ++i) {
    fresh.groups.push_back(i % 2);
    for (int64_t side = 0; side < rows.sides; ++side) scores.push_back(random.normal() - 0.5);
  }
  for (const char* name : {"split", "grouped", "localized", "weighted"}) {
    CalibrationOptions options(name);
    if (double* bandwidth = options.find(field::bandwidth)) *bandwidth = 1;
    const auto calibration = make_calibration(options, rows);
    const torch::Tensor radii = calibration->radii(fresh, Level(0.3));
    const std::vector<double> p = calibration->p_values(fresh, scores);
    ASSERT_EQ(p.size(), 60U) << name;
    for (int64_t i = 0; i < 60; ++i) {
      bool in = true;
      for (int64_t side = 0; side < 2; ++side) {
        const int64_t at = 2 * i + side;
        in = in && scores[static_cast<size_t>(at)] <= radii.reshape({-1})[at].item<double>();
      }
      EXPECT_EQ(p[static_cast<size_t>(i)] > 0.3, in) << name << i;
    }
  }
}

// A truth outside of the support is missed by its own target alone.
TEST(EachOutput, SupportIsOfEachTarget) {
  const auto head = network_of(linear_head(torch::ones({2, 1}), torch::zeros({2})));
  const auto score =
      make_score(ScoreOptions(ResidualOptions{}, {.support = "0:", .targets = 2}), head);
  const std::vector<double> found =
      score->score(torch::ones({1, 1}), torch::tensor({{-1.0, 3.0}}, torch::kDouble));
  EXPECT_THAT(found, testing::ElementsAre(kForever, 2));
}

TEST(EachOutput, OtherNumbersOfOutputsAreRefused) {
  const auto head = network_of(linear_head(torch::ones({2, 1}), torch::zeros({2})));
  EXPECT_THROW(make_score(ScoreOptions(ResidualOptions{}, {.targets = 3}), head), Error);
  const auto score = make_score(ScoreOptions(ResidualOptions{}, {.targets = 2}), head);
  EXPECT_THROW(score->score(torch::ones({1, 1}), torch::ones({1, 3})), Error);
  EXPECT_THROW(score->region(torch::ones({1, 1}), torch::ones({1, 1}, torch::kDouble)), Error);
}

}  // namespace
}  // namespace fcp
