// Exported graphs against PredictorCore: the same intervals to 5e-5 of their size, on random
// networks, for every score, norm and kind of head that can be exported.
#include "fcp/export/export.h"

#include <cmath>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/export/graph_builder.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/nn/runtime/network.h"
#include "fcp/predictor/predictor_core.h"

#include "tests/bounds/heads.h"
#include "tests/export/artifacts.h"
#include "tests/nn/graphs.h"

namespace fcp {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

Graph two_quantiles(const std::vector<int64_t>& widths) {
  Graph graph = make_mlp(widths);
  const int64_t half = widths.back() / 2;
  graph.initializers["halves"] = torch::tensor({half, half}, torch::kLong);
  graph.nodes.push_back(
      make_node("Split", {"y", "halves"}, {"low", "high"}, {{"axis", int64_t{1}}}));
  graph.outputs = {make_info("low", {kDynamic, half}), make_info("high", {kDynamic, half})};
  return graph;
}

TEST(Export, Residual) {
  torch::manual_seed(1);
  expect_same_intervals(calibrated_on_noise(make_mlp({3, 5, 2}), score_named("residual"), ""));
  expect_same_intervals(calibrated_on_noise(make_residual_network(), score_named("residual"), ""));
}

// What tells the training rows is not given away with an exported network.
TEST(Export, DropsWhatTellsTheTrainingRows) {
  Graph network = make_mlp({3, 5, 2});
  network.metadata = {{"fcp.training.filter", "1 1 0 1"},
                      {"fcp.training.sketch", "12"},
                      {"fcp.training.sha256", "34"},
                      {"fcp.targets", "[\"y\"]"}};
  const auto artifact = calibrated_on_noise(network, score_named("residual"), "");
  const Graph exported = export_artifact(artifact, {});
  EXPECT_EQ(exported.metadata.size(), 2U);
  EXPECT_TRUE(exported.metadata.contains("fcp.targets"));
  EXPECT_TRUE(exported.metadata.contains("fcp.export"));
}

TEST(Export, NormalizedResidual) {
  torch::manual_seed(2);
  for (const int64_t spreads : {1, 2}) {
    Graph graph = make_mlp({3, 5, 2});
    graph.initializers["ws"] = torch::randn({5, spreads});
    graph.nodes.push_back(make_node("MatMul", {"h1", "ws"}, {"s0"}));
    graph.nodes.push_back(make_node("Exp", {"s0"}, {"s"}));
    graph.outputs.push_back(make_info("s", {kDynamic, spreads}));
    ScoreOptions score = score_named("residual");
    score.output = "y";
    score.set(field::normalize, "s");
    expect_same_intervals(calibrated_on_noise(graph, score, ""));
  }
}

// A perceptron with heads on its hidden layer, as fcp fits them: a spread, a grid that ascends, and
// a rectifier.
Graph with_test_heads(int64_t outputs, int64_t quantiles, bool factors = false) {
  Graph graph = make_mlp({3, 6, outputs});
  const auto head = [&](const std::string& name, int64_t columns, const char* op) {
    graph.initializers[name + "_w"] = torch::randn({6, columns});
    graph.nodes.push_back(make_node("MatMul", {"h1", name + "_w"}, {name + "_0"}));
    graph.nodes.push_back(make_node(op, {name + "_0"}, {name}));
    graph.outputs.push_back(make_info(name, {kDynamic, columns}));
  };
  head(kSpreadOutput, outputs, "Exp");
  head("steps", outputs * quantiles, "Softplus");
  graph.outputs.pop_back();
  // Ascending but for a few, which are put in order.
  graph.initializers["sums"] = torch::ones({outputs * quantiles, outputs * quantiles}).triu() -
                               0.02 * torch::rand({outputs * quantiles, outputs * quantiles});
  graph.nodes.push_back(make_node("MatMul", {"steps", "sums"}, {kQuantilesOutput}));
  graph.outputs.push_back(make_info(kQuantilesOutput, {kDynamic, outputs * quantiles}));
  head(kRectifierOutput, 1, "Softplus");
  if (factors) head(kCholeskyOutput, outputs * outputs, "Exp");
  return graph;
}

// A perceptron with the ends of `rows` calibration rows around its answer.
CalibrationArtifact crossed_perceptron(int64_t rows) {
  CalibrationArtifact artifact;
  artifact.network = make_mlp({3, 5, 1});
  const torch::Tensor center = 0.2 * torch::randn({1, rows}), residual = torch::rand({1, rows});
  for (const auto& [name, offsets] : {std::pair(kCrossLowOutput, center - residual),
                                      std::pair(kCrossHighOutput, center + residual)}) {
    artifact.network.initializers[concat(name, "_offsets")] = offsets;
    artifact.network.nodes.push_back(make_node("Add", {"y", concat(name, "_offsets")}, {name}));
    artifact.network.outputs.push_back(make_info(name, {kDynamic, rows}));
  }
  artifact.method.score = score_named(CrossOptions::kName);
  artifact.method.score.output = "y";
  artifact.method.calibration = CrossFoldOptions{.folds = 2};
  for (int64_t i = 1; i <= rows; ++i) artifact.rows.scores.push_back(static_cast<double>(i));
  return artifact;
}

TEST(Export, CrossTakesTheEndsOfTheRank) {
  torch::manual_seed(12);
  const CalibrationArtifact artifact = crossed_perceptron(30);
  const ExportOptions options{.levels = {Level(0.1), Level(0.5), Level(0.9), Level(0.01)}};
  const Graph exported = export_artifact(artifact, options);
  const torch::Tensor x = rows_for(artifact.network, 25);
  const auto found = run_exported(exported, x);
  EXPECT_EQ(found.size(), 1 + 2 * options.levels.size()) << "the ends of all rows are left out";
  const internal::PredictorCore predictor(artifact);
  const torch::NoGradGuard no_gradients;
  for (const Level& level : options.levels) {
    const Regions expected = predictor.region(predictor.describe(x), level);
    const std::vector<std::string> names = export_names(artifact, options, level);
    const torch::Tensor lower = found.at(names[0]).to(torch::kDouble);
    const torch::Tensor upper = found.at(names[1]).to(torch::kDouble);
    EXPECT_TRUE(torch::allclose(lower, expected.lower, 5e-5, 5e-5)) << level.text();
    EXPECT_TRUE(torch::allclose(upper, expected.upper, 5e-5, 5e-5)) << level.text();
    EXPECT_TRUE((lower <= expected.lower).all().item<bool>()) << level.text();
    EXPECT_TRUE((upper >= expected.upper).all().item<bool>()) << level.text();
  }
  EXPECT_TRUE(found.at("upper_0.01").isinf().all().item<bool>());
}

TEST(Export, HeadsOnFeatures) {
  torch::manual_seed(31);
  for (const char* name : {"spread", "quantiles", "density"}) {
    for (const int64_t outputs : {1, 3}) {
      for (const int64_t quantiles : {2, 7, 49}) {
        for (const bool rectified : {false, true}) {
          for (const double noise : {0.3, 30.0}) {
            ScoreOptions score = score_named(name);
            if (rectified) score.rectifier = kRectifierOutput;
            SCOPED_TRACE(testing::Message() << name << outputs << '/' << quantiles << rectified);
            expect_same_intervals(
                calibrated_on_noise(with_test_heads(outputs, quantiles), score, "", noise),
                {.levels = {Level(0.1), Level(0.5)}});
          }
        }
      }
    }
  }
}

// The columns of each output's own intervals, both sides of each with a radius.
TEST(Export, EachOutputWithItsOwnRadius) {
  torch::manual_seed(33);
  for (const char* name : {"residual", "spread", "quantiles", "density"}) {
    for (const bool asymmetric : {false, true}) {
      for (const char* rectifier : {"", kRectifierOutput}) {
        ScoreOptions score = score_named(name);
        score.output = "y";
        score.targets = 3;
        score.rectifier = rectifier;
        if (bool* own = score.find(field::asymmetric)) *own = asymmetric;
        SCOPED_TRACE(testing::Message() << name << asymmetric << rectifier);
        expect_same_intervals(calibrated_on_noise(with_test_heads(3, 7), score, ""),
                              {.levels = {Level(0.1), Level(0.5)}});
      }
    }
  }
}

TEST(Export, TheBoxAroundAnEllipsoid) {
  torch::manual_seed(34);
  for (const int64_t outputs : {2, 3}) {
    for (const char* rectifier : {"", kRectifierOutput}) {
      ScoreOptions score = score_named("ellipsoid");
      score.output = "y";
      score.rectifier = rectifier;
      expect_same_intervals(calibrated_on_noise(with_test_heads(outputs, 7, true), score, ""),
                            {.levels = {Level(0.1), Level(0.5)}});
    }
  }
}

// Gaps in every order, many of them equal: which is taken first must be what the score says.
TEST(Export, DensityTakesGapsInTheSameOrder) {
  torch::manual_seed(32);
  for (int trial = 0; trial < 40; ++trial) {
    Graph graph = make_mlp({3, 6, 1});
    const int64_t quantiles = 3 + trial % 10;
    graph.initializers["steps"] = torch::randint(0, 4, {6, quantiles}, torch::kFloat) / 8;
    torch::Tensor sums = torch::ones({quantiles, quantiles}).triu();
    graph.initializers["sums"] = sums;
    graph.nodes.push_back(make_node("MatMul", {"h1", "steps"}, {"gaps"}));
    graph.nodes.push_back(make_node("MatMul", {"gaps", "sums"}, {kQuantilesOutput}));
    graph.outputs.push_back(make_info(kQuantilesOutput, {kDynamic, quantiles}));
    CalibrationArtifact artifact = calibrated_on_noise(graph, score_named("density"), "", 2);
    for (const double radius : {0.3, 1.0, 2.4, 3.0, 4.7, 6.1, 30.0}) {
      artifact.rows.scores.assign(40, radius);
      expect_same_intervals(artifact);
    }
  }
}

TEST(Export, RectifiedOfOtherScores) {
  torch::manual_seed(33);
  for (const char* name : {"residual", "linearized", "nested"}) {
    ScoreOptions score = score_named(name);
    score.rectifier = kRectifierOutput;
    if (score.find(field::floor) != nullptr) {
      score.set(field::floor, 0.5);
      score.set(field::slope, 1);
    }
    expect_same_intervals(calibrated_on_noise(with_test_heads(2, 3), score, "h1"));
    expect_same_intervals(calibrated_on_noise(with_test_heads(2, 3), score, "x"));
  }
  Graph graph = two_quantiles({3, 6, 4});
  graph.nodes.push_back(make_node("MatMul", {"h1", "rho"}, {kRectifierOutput}));
  graph.outputs.push_back(make_info(kRectifierOutput, {kDynamic, 2}));
  ScoreOptions score = score_named("cqr");
  score.rectifier = kRectifierOutput;
  for (const int64_t sides : {2, 1}) {  // a rectifier for each side, and one for both
    graph.initializers["rho"] = torch::randn({6, sides});
    graph.outputs.back().shape[1] = sides;
    score.set(field::asymmetric, sides == 2);
    expect_same_intervals(calibrated_on_noise(graph, score, "", 3));
  }
  score = ScoreOptions("feature_cqr", score);
  EXPECT_THAT([&] { export_artifact(calibrated_on_noise(graph, score, "h1")); },
              ThrowsMessage<Error>(HasSubstr("rectified feature_cqr is not exported")));
}

// One bound of every score, at radii of both signs, and ends within a support.
TEST(Export, OneSidedBounds) {
  torch::manual_seed(34);
  for (const BoundSide side : {BoundSide::kLower, BoundSide::kUpper}) {
    for (const char* name :
         {"residual", "spread", "quantiles", "density", "linearized", "nested", "cqr"}) {
      for (const bool rectified : {false, true}) {
        ScoreOptions score = score_named(name);
        score.side = side;
        const bool cqr = score.as<CqrOptions>() != nullptr;
        if (rectified && !cqr) score.rectifier = kRectifierOutput;
        SCOPED_TRACE(testing::Message() << name << side_name(side) << rectified);
        const Graph graph = cqr ? two_quantiles({3, 6, 4}) : with_test_heads(2, 7);
        const char* cut = score.traits().uses_features ? "h1" : "";
        if (rectified && score.as<NestedOptions>() != nullptr) {
          EXPECT_THAT([&] { export_artifact(calibrated_on_noise(graph, score, cut)); },
                      ThrowsMessage<Error>(HasSubstr("one end of rectified nested")));
          continue;
        }
        expect_same_intervals(calibrated_on_noise(graph, score, cut),
                              {.levels = {Level(0.1), Level(0.5), Level(0.95)}});
      }
    }
  }
}

TEST(Export, AsymmetricAndWithinASupport) {
  torch::manual_seed(35);
  for (const char* name : {"residual", "spread", "quantiles"}) {
    ScoreOptions score = score_named(name);
    score.set(field::asymmetric, true);
    expect_same_intervals(calibrated_on_noise(with_test_heads(2, 7), score, ""),
                          {.levels = {Level(0.1), Level(0.9)}});
    score.set(field::asymmetric, false);
    CalibrationArtifact artifact = calibrated_on_noise(with_test_heads(1, 7), score, "");
    artifact.method.score.support = "-1:0.25";
    expect_same_intervals(artifact, {.levels = {Level(0.1), Level(0.5)}});
    artifact.method.score.side = BoundSide::kUpper;
    expect_same_intervals(artifact, {.levels = {Level(0.1), Level(0.5)}});
    artifact.method.score.side = BoundSide::kBoth;
    artifact.method.score.integer = true;
    expect_same_intervals(artifact, {.levels = {Level(0.1), Level(0.5)}});
  }
}

TEST(Export, RefusesUnions) {
  ScoreOptions score = score_named("density");
  score.set(field::level_set, true);
  EXPECT_THAT([&] { export_artifact(calibrated_on_noise(with_test_heads(1, 5), score, "")); },
              ThrowsMessage<Error>(HasSubstr("unions of intervals")));
}

TEST(Export, Cqr) {
  torch::manual_seed(3);
  for (const bool asymmetric : {false, true}) {
    for (const double noise : {0.01, 3.0}) {  // negative radii, and positive ones
      ScoreOptions score = score_named("cqr");
      score.set(field::asymmetric, asymmetric);
      expect_same_intervals(calibrated_on_noise(two_quantiles({3, 6, 4}), score, "", noise));
    }
  }
}

// All cuts, norms, a floor and a scale.
TEST(Export, NestedOverPerceptrons) {
  torch::manual_seed(4);
  for (const Norm norm : kAllNorms) {
    const Graph graph = make_mlp({4, 7, 6, 5, 2});
    for (const std::string cut : {"", "h1", "z2", "h3"}) {
      ScoreOptions score;
      score.set(field::norm, norm);
      expect_same_intervals(calibrated_on_noise(graph, score, cut));
      score.set(field::floor, 0.5);
      score.set(field::slope, 2);
      const int64_t width = cut.empty() ? 4 : cut == "h1" ? 7 : cut == "z2" ? 6 : 5;
      for (int64_t i = 0; i < width; ++i) {
        score.find(field::scale)->push_back(0.5 + static_cast<double>(i % 3));
      }
      expect_same_intervals(calibrated_on_noise(graph, score, cut),
                            {.levels = {Level(0.1), Level(0.3)}});
    }
  }
}

// Curves that rise, fall, turn and bend.
TEST(Export, NestedOverActivations) {
  torch::manual_seed(5);
  for (const auto& [name, graph] : activated_heads({3, 6, 5, 2})) {
    SCOPED_TRACE(name);
    expect_same_intervals(calibrated_on_noise(graph, {}, "", 0.1));
  }
}

TEST(Export, NestedOverConvolutions) {
  torch::manual_seed(6);
  for (const std::string cut : {"", "h1"}) {
    for (const Norm norm : kAllNorms) {
      ScoreOptions score;
      score.set(field::norm, norm);
      expect_same_intervals(calibrated_on_noise(make_residual_network(), score, cut, -0.3));
    }
  }
  for (const std::string cut : {"", "c", "p", "s"}) {
    expect_same_intervals(calibrated_on_noise(make_mixed_head(), {}, cut, 0.003));
  }
  expect_same_intervals(calibrated_on_noise(make_dense_head(3, 4, 2, 4, 5), {}, "", 0.1));
}

// Sub, Mul of two tensors, Div, negative alpha of Gemm, a constant on the left of MatMul.
TEST(Export, NestedOverArithmetic) {
  torch::manual_seed(7);
  Graph graph;
  graph.inputs = {make_info("x", {kDynamic, 3, 4})};
  graph.outputs = {make_info("y", {kDynamic, 5})};
  graph.initializers["left"] = torch::randn({4, 3});
  graph.initializers["divisor"] = torch::tensor({-2.0f, 0.5f, 3.0f, 1.0f});
  graph.initializers["one"] = torch::tensor({1.0f});
  graph.initializers["w"] = torch::randn({16, 5}) * 0.3;
  graph.initializers["b"] = torch::randn({5});
  graph.nodes = {
      make_node("MatMul", {"left", "x"}, {"a"}),
      make_node("Sigmoid", {"a"}, {"s"}),
      make_node("Mul", {"a", "s"}, {"m"}),
      make_node("Div", {"m", "divisor"}, {"d"}),
      make_node("Sub", {"one", "d"}, {"e"}),
      make_node("Sub", {"e", "a"}, {"f"}),
      make_node("Flatten", {"f"}, {"g"}),
      make_node("Gemm", {"g", "w", "b"}, {"y"}, {{"alpha", -0.5f}, {"beta", 2.0f}}),
  };
  expect_same_intervals(calibrated_on_noise(graph, {}, "", 0.2));
}

TEST(Export, NestedOverSines) {
  torch::manual_seed(16);
  for (const std::string op : {"Sin", "Cos"}) {
    Graph graph = make_mlp({3, 6, 5, 2});
    for (Node& node : graph.nodes) {
      if (node.op == "Relu") node.op = op;
    }
    for (const float spread : {0.5f, 4.0f}) {  // over a part of a period, and over several
      graph.initializers["w2"] = graph.initializers["w2"].tensor() * spread;
      for (const std::string cut : {"", "z1"}) {
        expect_same_intervals(calibrated_on_noise(graph, {}, cut, 0.1));
      }
    }
  }
}

// LayerNormalization with scales of both signs, and a softmax that gates.
TEST(Export, NestedOverNormalisations) {
  torch::manual_seed(8);
  for (const int64_t opset : {17, 18}) {
    for (const bool biased : {false, true}) {
      Graph graph = make_mlp({4, 6, 6, 2});
      graph.opset = opset;
      graph.initializers["scale"] = torch::randn({6});
      graph.initializers["shift"] = torch::randn({6});
      std::vector<std::string> inputs = {"z1", "scale"};
      if (biased) inputs.push_back("shift");
      graph.nodes[1] = make_node("LayerNormalization", inputs, {"h1"}, {{"epsilon", 1e-3f}});
      graph.nodes[3] = make_node("Softmax", {"z2"}, {"share"}, {{"axis", int64_t{-1}}});
      graph.nodes.insert(graph.nodes.begin() + 4, make_node("Mul", {"share", "z2"}, {"h2"}));
      for (const std::string cut : {"", "z1", "h1"}) {
        expect_same_intervals(calibrated_on_noise(graph, {}, cut, 0.1));
      }
    }
  }
}

TEST(Export, FeatureCqrAlsoWithNegativeRadii) {
  torch::manual_seed(8);
  for (const bool asymmetric : {false, true}) {
    int negative = 0;
    for (const double noise : {0.001, 0.2, 3.0}) {
      // Quantiles far apart, and truths near their middle.
      Graph graph = two_quantiles({3, 6, 6, 2});
      graph.initializers["b3"] = torch::tensor({-8.0f, 8.0f});
      ScoreOptions score = score_named("feature_cqr");
      score.set(field::asymmetric, asymmetric);
      score.set(field::floor, 0.3);
      score.set(field::slope, 1);
      CalibrationArtifact artifact = calibrated_on_noise(graph, score, "h1", noise);
      if (noise < 1) {
        const ScoredNetwork predictor(graph, score, "h1");
        const torch::Tensor features = predictor.features(rows_for(graph));
        const torch::Tensor middle = predictor.score().region(features, 0.0).prediction;
        artifact.rows.scores =
            predictor.score().score(features, middle + noise * torch::randn_like(middle));
      }
      negative += artifact.radius(Level(0.1))[0] < 0;
      expect_same_intervals(artifact);
    }
    EXPECT_GE(negative, 1);
  }
}

TEST(Export, Linearized) {
  torch::manual_seed(9);
  for (const Norm norm : kAllNorms) {
    for (const std::string op : {"Relu", "LeakyRelu", "Tanh", "Sigmoid"}) {
      Graph graph = make_mlp({4, 7, 6, 2});
      for (Node& node : graph.nodes) {
        if (node.op == "Relu") node.op = op;
      }
      graph.nodes.back().outputs = {"raw"};
      graph.initializers["scale"] = torch::tensor({{3.0f, -0.5f}});
      graph.nodes.push_back(make_node("Mul", {"raw", "scale"}, {"y"}));
      for (const std::string cut : {"", "z1", "h2"}) {
        ScoreOptions score = score_named("linearized");
        score.set(field::norm, norm);
        score.set(field::floor, cut == "z1" ? 0.5 : 0);
        score.set(field::slope, 2);
        // Tanh and Sigmoid have a slack for their derivatives besides.
        expect_same_intervals(calibrated_on_noise(graph, score, cut), {}, 2e-4);
      }
    }
  }
}

TEST(Export, InfiniteRadiusGivesInfiniteEnds) {
  torch::manual_seed(10);
  for (const std::string name : {"residual", "nested", "linearized"}) {
    const CalibrationArtifact artifact =
        calibrated_on_noise(make_mlp({3, 5, 2}), score_named(name), "");
    const ExportOptions options = {.levels = {Level(0.001)}};
    const auto found =
        run_exported(export_artifact(artifact, options), rows_for(artifact.network, 4));
    EXPECT_TRUE(torch::equal(found.at("lower"), torch::full({4, 2}, -INFINITY)));
    EXPECT_TRUE(torch::equal(found.at("upper"), torch::full({4, 2}, INFINITY)));
  }
}

TEST(Export, LinearizedAtAFixedBatch) {
  torch::manual_seed(17);
  Graph graph = make_mlp({3, 5, 2});
  graph.inputs[0].shape[0] = graph.outputs[0].shape[0] = 25;
  Graph free = graph;
  free.inputs[0].shape[0] = free.outputs[0].shape[0] = kDynamic;
  CalibrationArtifact artifact = calibrated_on_noise(free, score_named("linearized"), "h1");
  artifact.network = graph;
  expect_same_intervals(artifact);
}

}  // namespace
}  // namespace fcp
