// Exported graphs against TensorPredictor: the same intervals to 5e-5 of their size, the same
// label sets, on random networks, for every score, norm and kind of head that can be exported.
#include "fcp/export/export.h"

#include <cmath>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/calibration/tensor_predictor.h"
#include "fcp/export/graph_builder.h"
#include "fcp/network/network.h"
#include "fcp/scores/head_outputs.h"

#include "tests/bounds/heads.h"
#include "tests/export/run_exported.h"
#include "tests/network/graphs.h"

namespace fcp {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Property;
using testing::ThrowsMessage;

constexpr int64_t kRows = 40;

torch::Tensor rows_for(const Graph& graph, int64_t rows = kRows) {
  std::vector<int64_t> shape = graph.inputs[0].shape;
  shape[0] = rows;
  return torch::randn(shape);
}

// The network calibrated on rows whose truth is the prediction and noise; above it alone for a
// negative one, for networks that end in a Relu.
CalibrationArtifact calibrated_on_noise(const Graph& graph, const ScoreOptions& score,
                                        const std::string& cut, double noise = 1,
                                        size_t of_output = 0) {
  CalibrationArtifact artifact;
  artifact.network = graph;
  artifact.score = score;
  artifact.cut = cut;
  const ScoredNetwork predictor(graph, score, cut);
  const torch::Tensor features = predictor.features(rows_for(graph));
  const torch::NoGradGuard no_gradients;
  const torch::Tensor mean =
      predictor.shared_head()->run({features})[of_output].flatten(1).to(torch::kDouble);
  artifact.rows.sides = predictor.score().sides();
  const torch::Tensor normal = torch::randn_like(mean);
  artifact.rows.scores = predictor.score().score(
      features, mean + (noise < 0 ? -noise * normal.abs() : noise * normal));
  return artifact;
}

// Largest difference of two ends, relative to `size` [N, 1].
double difference(const torch::Tensor& found, const torch::Tensor& expected,
                  const torch::Tensor& size) {
  const torch::Tensor wide = found.flatten(1).to(torch::kDouble);
  EXPECT_EQ(wide.sizes(), expected.sizes());
  return ((wide - expected).abs() / size).masked_fill(wide == expected, 0).max().item<double>();
}

void expect_same_intervals(const CalibrationArtifact& artifact, const ExportOptions& options = {},
                           double tolerance = 5e-5) {
  const Graph exported = export_artifact(artifact, options);
  const torch::Tensor x = rows_for(artifact.network, 25);
  const auto found = run_exported(exported, x);
  const TensorPredictor predictor(artifact);
  const TestInputs rows = predictor.describe(x);
  const torch::NoGradGuard no_gradients;
  const Tensors plain = Network(artifact.network).run({x});
  for (const Level& level : options.levels) {
    const Regions expected = predictor.region(rows, level);
    // An end near 0 is a difference of larger numbers: what counts is the largest of the row.
    Tensors numbers = {expected.lower, expected.upper};
    for (const torch::Tensor& output : plain) numbers.push_back(output.flatten(1));
    const torch::Tensor size = torch::cat(numbers, 1).abs().amax(1, true);
    const std::vector<std::string> names = export_names(artifact, options, level);
    EXPECT_LT(difference(found.at(names[0]), expected.lower, size), tolerance) << names[0];
    EXPECT_LT(difference(found.at(names[1]), expected.upper, size), tolerance) << names[1];
    EXPECT_LT(artifact.radius(level)[0], 1e6);
  }
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_TRUE(torch::allclose(found.at(artifact.network.outputs[i].name), plain[i], 1e-5, 1e-5));
  }
}

ScoreOptions score_named(const std::string& name) {
  ScoreOptions score;
  score.name = name;
  return score;
}

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
    score.normalize = "s";
    expect_same_intervals(calibrated_on_noise(graph, score, ""));
  }
}

// A perceptron with heads on its hidden layer, as fcp fits them: a spread, a grid that ascends, and
// a rectifier.
Graph with_test_heads(int64_t outputs, int64_t quantiles) {
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
  artifact.score = score_named(kCrossScore);
  artifact.score.output = "y";
  artifact.calibration.name = kCrossScore;
  artifact.calibration.folds = 2;
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
  const TensorPredictor predictor(artifact);
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
    score.floor = 0.5;
    score.slope = 1;
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
    score.asymmetric = sides == 2;
    expect_same_intervals(calibrated_on_noise(graph, score, "", 3));
  }
  score.name = "feature_cqr";
  EXPECT_THAT([&] { export_artifact(calibrated_on_noise(graph, score, "h1")); },
              ThrowsMessage<Error>(HasSubstr("rectified feature_cqr is not exported")));
}

TEST(Export, RefusesUnions) {
  ScoreOptions score = score_named("density");
  score.level_set = true;
  EXPECT_THAT([&] { export_artifact(calibrated_on_noise(with_test_heads(1, 5), score, "")); },
              ThrowsMessage<Error>(HasSubstr("unions of intervals")));
}

TEST(Export, Cqr) {
  torch::manual_seed(3);
  for (const bool asymmetric : {false, true}) {
    for (const double noise : {0.01, 3.0}) {  // negative radii, and positive ones
      ScoreOptions score = score_named("cqr");
      score.asymmetric = asymmetric;
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
      score.norm = norm;
      expect_same_intervals(calibrated_on_noise(graph, score, cut));
      score.floor = 0.5;
      score.slope = 2;
      const int64_t width = cut.empty() ? 4 : cut == "h1" ? 7 : cut == "z2" ? 6 : 5;
      for (int64_t i = 0; i < width; ++i) {
        score.scale.push_back(0.5 + static_cast<double>(i % 3));
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
      score.norm = norm;
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
      graph.initializers["w2"] = graph.initializers["w2"] * spread;
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
      score.asymmetric = asymmetric;
      score.floor = 0.3;
      score.slope = 1;
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
        score.norm = norm;
        score.floor = cut == "z1" ? 0.5 : 0;
        score.slope = 2;
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

CalibrationArtifact calibrated_on_labels(const Graph& graph, const ScoreOptions& score,
                                         const std::string& cut, const std::string& group = "") {
  CalibrationArtifact artifact;
  artifact.network = graph;
  artifact.score = score;
  artifact.cut = cut;
  const ScoredNetwork predictor(graph, score, cut);
  const int64_t classes = predictor.score().classes();
  const torch::Tensor features = predictor.features(rows_for(graph, 30 * classes));
  const torch::Tensor labels = torch::randint(classes, {30 * classes, 1}, torch::kLong);
  artifact.rows.scores = predictor.score().score(features, labels.to(torch::kDouble));
  if (group.empty()) return artifact;
  artifact.calibration.name = "grouped";
  artifact.calibration.group = group;
  for (int64_t i = 0; i < classes; ++i) artifact.rows.group_names.push_back(std::to_string(i));
  // The last class has no rows, and so an infinite radius.
  for (int64_t i = 0; i < 30 * classes; ++i) {
    artifact.rows.groups.push_back(labels[i].item<int64_t>() % (classes - 1));
  }
  return artifact;
}

void expect_same_sets(const CalibrationArtifact& artifact) {
  const ExportOptions options = {.levels = {Level(0.1), Level(0.5), Level(0.001)}};
  const torch::Tensor x = rows_for(artifact.network, 200);
  const auto found = run_exported(export_artifact(artifact, options), x);
  const TensorPredictor predictor(artifact);
  const TestInputs rows = predictor.describe(x);
  for (const Level& level : options.levels) {
    const torch::Tensor expected = predictor.region(rows, level).members;
    const torch::Tensor members = found.at("in_set_" + level.text());
    // Wider by a slack: all of fcp's labels, and hardly one more.
    EXPECT_EQ(expected.logical_and(members.logical_not()).sum().item<int64_t>(), 0) << level.text();
    EXPECT_LE((members != expected).sum().item<int64_t>(), 2) << level.text();
  }
}

TEST(Export, LabelSets) {
  torch::manual_seed(11);
  for (const std::string name : {"lac", "aps", "raps", "feature_margin"}) {
    for (const std::string group : {"", kByPrediction, kByLabel}) {
      for (const bool softmax : {false, true}) {
        SCOPED_TRACE(name + " " + group + (softmax ? " softmax" : ""));
        Graph graph = make_mlp({4, 8, 6});
        if (softmax) {
          graph.nodes.push_back(make_node("Softmax", {"y"}, {"p"}, {{"axis", int64_t{1}}}));
          graph.outputs = {make_info("p", {kDynamic, 6})};
        }
        ScoreOptions score = score_named(name);
        score.randomized = false;
        score.temperature = softmax ? 1.7 : 1;
        score.rank_weight = name == "raps" || softmax ? 0.05 : 0;
        score.rank_free = 2;
        expect_same_sets(calibrated_on_labels(graph, score, "h1", group));
      }
    }
  }
}

// A forest gives classes the probability 0, whose logarithm is infinite.
TEST(Export, ProbabilitiesOfZeroAreCompared) {
  torch::manual_seed(15);
  Graph graph = make_mlp({4, 8, 6});
  graph.initializers["axis"] = torch::tensor({int64_t{1}}, torch::kLong);
  graph.initializers["least"] = torch::tensor({1.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f});
  graph.nodes.push_back(make_node("Max", {"y", "least"}, {"plus"}));
  graph.nodes.push_back(make_node("ReduceSum", {"plus", "axis"}, {"sum"}));
  graph.nodes.push_back(make_node("Div", {"plus", "sum"}, {"p"}));
  graph.nodes.push_back(make_node("Log", {"p"}, {"logarithm"}));
  graph.outputs = {make_info("logarithm", {kDynamic, 6})};
  for (const std::string name : {"lac", "aps"}) {
    ScoreOptions score = score_named(name);
    score.randomized = false;
    expect_same_sets(calibrated_on_labels(graph, score, ""));
  }
}

// Equal logits: the lower label has the better rank, as everywhere.
TEST(Export, RanksEqualLogitsAlike) {
  torch::manual_seed(12);
  Graph graph = make_mlp({3, 5});
  graph.initializers["w1"].zero_();
  graph.initializers["b1"] = torch::tensor({1.0f, 2.0f, 2.0f, 0.0f, 2.0f});
  ScoreOptions score = score_named("raps");
  score.randomized = false;
  score.rank_weight = 0.01;
  expect_same_sets(calibrated_on_labels(graph, score, ""));
}

// Rows of few kinds, in another arithmetic: all that fcp includes is included.
TEST(Export, IncludesInAnotherArithmeticWhatFcpIncludes) {
  torch::manual_seed(15);
  const torch::Tensor kinds = torch::randn({6, 2});
  const torch::Tensor x = kinds.repeat({50, 1});
  for (const std::string op : {"Tanh", "Relu"}) {
    Graph graph = make_mlp({2, 64, 32, 3});
    for (Node& node : graph.nodes) {
      if (node.op == "Relu") node.op = op;
    }
    for (const std::string name : {"lac", "aps", "raps", "feature_margin"}) {
      SCOPED_TRACE(op + " " + name);
      CalibrationArtifact artifact;
      artifact.network = graph;
      artifact.score = score_named(name);
      artifact.score.randomized = false;
      artifact.cut = "h2";
      const TensorPredictor untrained(calibrated_on_labels(graph, artifact.score, artifact.cut));
      const torch::Tensor features = untrained.predictor().features(x);
      const torch::Tensor labels = torch::randint(3, {300, 1}, torch::kLong);
      artifact.rows.scores = untrained.score().score(features, labels.to(torch::kDouble));
      const TensorPredictor predictor(artifact);
      const ExportOptions options = {.levels = {Level(0.1), Level(0.2), Level(0.4), Level(0.6)}};
      const auto found =
          run_exported(in_double(export_artifact(artifact, options)), x.to(torch::kDouble));
      for (const Level& level : options.levels) {
        const torch::Tensor ours = predictor.region(predictor.describe(x), level).members;
        const torch::Tensor theirs = found.at("in_set_" + level.text());
        EXPECT_EQ(ours.logical_and(theirs.logical_not()).sum().item<int64_t>(), 0) << level.text();
        EXPECT_EQ(theirs.sum().item<int64_t>(), ours.sum().item<int64_t>()) << level.text();
      }
    }
    for (const std::string name : {"residual", "nested", "linearized"}) {
      SCOPED_TRACE(op + " " + name);
      const CalibrationArtifact artifact = calibrated_on_noise(graph, score_named(name), "h1", 0.5);
      const TensorPredictor predictor(artifact);
      const auto found = run_exported(in_double(export_artifact(artifact)), x.to(torch::kDouble));
      const Regions ours = predictor.region(predictor.describe(x), Level(0.1));
      EXPECT_TRUE((found.at("lower") <= ours.lower).all().item<bool>());
      EXPECT_TRUE((found.at("upper") >= ours.upper).all().item<bool>());
    }
  }
}

// Derivatives of saturated activations are differences that cancel.
TEST(Export, SlopesOfSaturatedActivationsAreNotShort) {
  torch::manual_seed(16);
  for (const std::string op : {"Tanh", "Sigmoid"}) {
    Graph graph = make_mlp({3, 8, 2});
    for (Node& node : graph.nodes) {
      if (node.op == "Relu") node.op = op;
    }
    graph.initializers["w1"] *= 10;
    const CalibrationArtifact artifact = calibrated_on_noise(graph, score_named("linearized"), "");
    const torch::Tensor x = rows_for(graph, 500);
    const TensorPredictor predictor(artifact);
    const auto found = run_exported(in_double(export_artifact(artifact)), x.to(torch::kDouble));
    const Regions ours = predictor.region(predictor.describe(x), Level(0.1));
    EXPECT_TRUE((found.at("lower") <= ours.lower).all().item<bool>()) << op;
    EXPECT_TRUE((found.at("upper") >= ours.upper).all().item<bool>()) << op;
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

// Weights near the end of single precision: no NaN where fcp has numbers.
TEST(Export, LargeWeightsGiveNoNan) {
  torch::manual_seed(18);
  for (const Norm norm : kAllNorms) {
    Graph graph = make_mlp({3, 4, 4, 1});
    graph.initializers["w2"] *= 1e20;
    graph.initializers["w3"] *= 1e19;
    ScoreOptions score;
    score.norm = norm;
    CalibrationArtifact artifact;
    artifact.network = graph;
    artifact.score = score;
    artifact.cut = "h1";
    artifact.rows.scores.assign(20, 1.5);
    const torch::Tensor x = rows_for(graph, 10);
    const auto found = run_exported(export_artifact(artifact), x);
    const TensorPredictor predictor(artifact);
    const Regions ours = predictor.region(predictor.describe(x), Level(0.1));
    EXPECT_TRUE((found.at("lower").to(torch::kDouble) <= ours.lower).all().item<bool>());
    EXPECT_TRUE((found.at("upper").to(torch::kDouble) >= ours.upper).all().item<bool>());
  }
}

void expect_refused(const CalibrationArtifact& artifact, const std::string& why) {
  EXPECT_THAT([&] { export_artifact(artifact); }, ThrowsMessage<Error>(HasSubstr(why)));
}

// Axes are attributes or inputs, C of Gemm is optional or not.
TEST(Export, SpeaksEveryOperatorSet) {
  torch::manual_seed(14);
  for (const int64_t opset : {7, 9, 11, 13, 18, 21}) {
    SCOPED_TRACE(opset);
    Graph graph = make_mlp({4, 16, 16, 3});
    graph.opset = opset;
    for (const Norm norm : kAllNorms) {
      ScoreOptions score = score_named("linearized");
      score.norm = norm;
      expect_same_intervals(calibrated_on_noise(graph, score, "h1"));
    }
    expect_same_intervals(calibrated_on_noise(graph, {}, "h1"));
    for (const std::string name : {"lac", "feature_margin", "raps"}) {
      ScoreOptions score = score_named(name);
      score.randomized = false;
      const CalibrationArtifact artifact = calibrated_on_labels(graph, score, "h2");
      if (name == "raps" && opset < 11) {
        expect_refused(artifact, "of ONNX operator set 9, to rank labels takes 11 or later");
      } else {
        expect_same_sets(artifact);
      }
    }
  }
}

TEST(Export, KeepsTheNetworkAndNamesItsOutputs) {
  const Graph graph = make_mlp({3, 5, 2});
  CalibrationArtifact artifact = calibrated_on_noise(graph, score_named("residual"), "");
  artifact.provenance["data"] = "cal.csv";
  const auto names = [](const Graph& of) {
    std::vector<std::string> found;
    for (const TensorInfo& output : of.outputs) found.push_back(output.name);
    return found;
  };
  const Graph one = export_artifact(artifact);
  EXPECT_THAT(names(one), ElementsAre("y", "lower", "upper"));
  EXPECT_EQ(one.outputs[1].shape, graph.outputs[0].shape);
  EXPECT_EQ(one.opset, graph.opset);
  EXPECT_EQ(one.nodes[0].inputs, graph.nodes[0].inputs);
  EXPECT_FALSE(one.initializers.contains("fcp.scores"));
  EXPECT_THAT(one.metadata.at("fcp.export"), HasSubstr("cal.csv"));
  EXPECT_THAT(names(export_artifact(
                  artifact, {.levels = {Level(0.1), Level::parse("0.05")}, .prefix = "y_"})),
              ElementsAre("y", "y_lower_0.1", "y_upper_0.1", "y_lower_0.05", "y_upper_0.05"));
}

// As in attention: both factors vary with the feature.
TEST(Export, NestedOverProductsOfTwoVaryingTensors) {
  torch::manual_seed(17);
  Graph graph = make_mlp({3, 4, 4, 1});
  graph.initializers["shape"] = torch::tensor({-1, 2, 2}, torch::kLong);
  graph.initializers["flat"] = torch::tensor({-1, 4}, torch::kLong);
  graph.nodes[3].outputs = {"r"};
  graph.nodes[4].inputs[0] = "product";
  const std::vector<Node> nodes = {
      make_node("Reshape", {"r", "shape"}, {"a"}),
      make_node("Transpose", {"a"}, {"b"}, {{"perm", std::vector<int64_t>{0, 2, 1}}}),
      make_node("MatMul", {"a", "b"}, {"m"}), make_node("Reshape", {"m", "flat"}, {"product"})};
  graph.nodes.insert(graph.nodes.begin() + 4, nodes.begin(), nodes.end());
  expect_same_intervals(calibrated_on_noise(graph, {}, "h1", 0.1));
  graph.opset = 10;
  expect_refused(calibrated_on_noise(graph, {}, "h1", 0.1),
                 "MatMul node 'm_node': its interval cannot be written as ONNX nodes");
}

// LayerNormalization as tf2onnx writes it, a quotient of two tensors, and Einsum with a
// constant. Where a divisor may be 0 both sides say everything.
TEST(Export, NestedOverQuotients) {
  torch::manual_seed(18);
  for (const double radius : {0.01, 5.0}) {
    Graph graph = make_mlp({3, 4, 4, 2});
    graph.initializers["three"] = torch::tensor(3.0f);
    graph.initializers["mix"] = torch::randn({4, 4});
    graph.nodes[3].outputs = {"r"};
    graph.nodes[4].inputs[0] = "mixed";
    const std::vector<Node> nodes = {make_node("Add", {"z2", "three"}, {"above"}),
                                     make_node("Reciprocal", {"above"}, {"inverse"}),
                                     make_node("Exp", {"r"}, {"grown"}),
                                     make_node("Div", {"inverse", "grown"}, {"quotient"}),
                                     make_node("Einsum", {"quotient", "mix"}, {"mixed"},
                                               {{"equation", std::string("ni,ij->nj")}})};
    graph.nodes.insert(graph.nodes.begin() + 4, nodes.begin(), nodes.end());
    expect_same_intervals(calibrated_on_noise(graph, {}, "h1", radius));
  }
}

TEST(Export, SaysWhyNot) {
  torch::manual_seed(13);
  const Graph graph = make_mlp({3, 5, 4, 2});
  const CalibrationArtifact good = calibrated_on_noise(graph, {}, "h1");
  CalibrationArtifact bad = good;
  bad.calibration.name = "localized";
  expect_refused(bad, "localized calibration gives each row a radius of its own");
  bad.calibration.name = "grouped";
  bad.calibration.group = "region";
  expect_refused(bad, "told by 'region', which is not an input of the network");
  bad = good;
  bad.score.bound.method = BoundMethod::kCrown;
  expect_refused(bad, "bounds by crown walk backwards");
  bad = good;
  bad.score.bound.outward = true;
  expect_refused(bad, "bounds that hold every rounding");
  bad = good;
  bad.score.name = "surrogate";
  expect_refused(bad, "surrogate searches features by gradient descent");
  bad.score.name = "feature_sampled";
  expect_refused(bad, "calibrate with feature_margin to export");
  bad.score.name = "raps";
  expect_refused(bad, "calibrate with --not-randomized to export");
  bad.score.name = "feature_margin";
  expect_refused(bad, "behind more than one linear layer");
  bad = good;
  bad.network.opset = 8;
  bad.network.nodes[1] =
      make_node("Upsample", {bad.network.nodes[1].inputs[0]}, bad.network.nodes[1].outputs,
                {{"scales", std::vector<float>{1, 1}}});
  expect_refused(bad, "is of ONNX operator set 8, export needs 9 or later");
  bad = good;
  bad.network.inputs[0].shape[1] = kDynamic;
  expect_refused(bad, "input 'x' does not say its shape");
  bad = good;
  for (Node& node : bad.network.nodes) {
    if (node.outputs[0] == "h2") node.outputs[0] = "lower";
    if (node.inputs[0] == "h2") node.inputs[0] = "lower";
  }
  expect_refused(bad, "has a tensor 'lower' already; --prefix");
  bad = good;
  bad.score.name = "linearized";
  for (Node& node : bad.network.nodes) {
    if (node.op == "Relu") node.op = "Softplus";
  }
  expect_refused(bad, "its gradient is not written as ONNX nodes");
  EXPECT_THAT(
      [&] {
        export_artifact(good, {.levels = {Level(0.1), Level(0.1)}});
      },
      ThrowsMessage<Error>(HasSubstr("the level 0.1 is given twice")));
}

}  // namespace
}  // namespace fcp
