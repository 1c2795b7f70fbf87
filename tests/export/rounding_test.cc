// Exports where rounding matters: what fcp includes is included, or the export is refused.
#include "fcp/predictor/rounding.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/export/export.h"

#include "tests/export/artifacts.h"
#include "tests/nn/graphs.h"

namespace fcp {
namespace {

// Rows far from 0, whose layers cancel: the export includes what fcp includes, or is refused.
TEST(Export, IncludesWhatFcpIncludesWhereNumbersCancel) {
  torch::manual_seed(30);
  size_t refused = 0, kept = 0;
  for (int trial = 0; trial < 6; ++trial) {
    Graph graph = make_mlp({200, 16, 3});
    graph.initializers["w1"] =
        graph.initializers["w1"].tensor() - graph.initializers["w1"].tensor().mean(1, true);
    const double far = std::vector{10.0, 300.0, 2000.0}[static_cast<size_t>(trial % 3)];
    const auto rows = [&](int64_t count) { return far + 5 * torch::randn({count, 200}); };
    for (const std::string name : {"residual", "nested", "linearized", "feature_margin", "lac"}) {
      SCOPED_TRACE(concat(name, " at ", far));
      CalibrationArtifact artifact;
      artifact.network = graph;
      artifact.method.score = score_named(name);
      artifact.method.cut = uses_features(name) ? "h1" : "";
      const ScoredNetwork network(graph, artifact.method.score, artifact.method.cut);
      const torch::Tensor features = network.features(rows(100));
      const torch::Tensor mean = network.shared_head()->run({features})[0].to(torch::kDouble);
      const torch::Tensor truth = predicts_labels(name)
                                      ? torch::randint(3, {100, 1}, torch::kDouble)
                                      : mean + torch::randn_like(mean);
      artifact.rows.scores = network.score().score(features, truth);
      artifact = measured_on(artifact, rows(64));
      Graph exported;
      try {
        exported = export_artifact(artifact);
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("rounding in single precision"), std::string::npos)
            << error.what();
        ++refused;
        continue;
      }
      ++kept;
      const torch::Tensor x = rows(200);
      const auto found = run_exported(in_double(exported), x.to(torch::kDouble));
      const internal::PredictorCore predictor(artifact);
      const Regions ours = predictor.region(predictor.describe(x), Level(0.1));
      if (predicts_labels(name)) {
        EXPECT_FALSE(ours.members.logical_and(found.at("in_set").logical_not()).any().item<bool>());
      } else {
        EXPECT_TRUE((found.at("lower") <= ours.lower).all().item<bool>());
        EXPECT_TRUE((found.at("upper") >= ours.upper).all().item<bool>());
      }
    }
  }
  EXPECT_GT(kept, refused);
}

// Gaps that are equal but for rounding: whichever is taken first, all that fcp takes is taken.
TEST(Export, DensityIncludesWhatFcpIncludesWhereGapsAreNearlyEqual) {
  torch::manual_seed(31);
  for (const double unequal : {0.0, 1e-6, 1e-2}) {
    Graph graph = make_mlp({8, 16, 1});
    constexpr int64_t kQuantiles = 12;
    graph.initializers["wq"] = (torch::randn({1, 16}) / 4).repeat({kQuantiles, 1}) +
                               unequal * torch::randn({kQuantiles, 16});
    graph.initializers["bq"] = torch::linspace(-1, 1, kQuantiles);
    graph.nodes.push_back(
        make_node("Gemm", {"h1", "wq", "bq"}, {"fcp.quantiles"}, {{"transB", int64_t{1}}}));
    graph.outputs.push_back(make_info("fcp.quantiles", {kDynamic, kQuantiles}));
    CalibrationArtifact artifact;
    artifact.network = graph;
    artifact.method.score = score_named("density");
    for (int i = 0; i < 40; ++i) artifact.rows.scores.push_back(0.3 * i);
    artifact = measured_on(artifact, 100 * torch::randn({64, 8}));
    ASSERT_TRUE(artifact.rounding.measured());
    const torch::Tensor x = 100 * torch::randn({300, 8});
    const internal::PredictorCore predictor(artifact);
    for (const double alpha : {0.9, 0.5, 0.1}) {
      const ExportOptions options = {.levels = {Level(alpha)}};
      const auto found =
          run_exported(in_double(export_artifact(artifact, options)), x.to(torch::kDouble));
      const Regions ours = predictor.region(predictor.describe(x), Level(alpha));
      EXPECT_TRUE((found.at("lower") <= ours.lower).all().item<bool>()) << unequal << alpha;
      EXPECT_TRUE((found.at("upper") >= ours.upper).all().item<bool>()) << unequal << alpha;
    }
  }
}

// A head that jumps: the ball is larger by what rounding may do, so that no step is lost.
TEST(Export, StepsOfTheHeadAreNotLost) {
  torch::manual_seed(32);
  Graph graph = make_mlp({6, 8, 2});
  graph.nodes.back().outputs = {"t"};
  graph.nodes.push_back(make_node("Sign", {"t"}, {"y"}));
  CalibrationArtifact artifact;
  artifact.network = graph;
  artifact.method.score = score_named("nested");
  artifact.method.cut = "h1";
  const torch::Tensor x = torch::randn({400, 6});
  const ScoredNetwork network(graph, artifact.method.score, artifact.method.cut);
  // Truths on the other side: their scores are the radii at which the step is reached.
  const torch::Tensor features = network.features(x);
  const torch::Tensor answer = network.shared_head()->run({features})[0].to(torch::kDouble);
  artifact.rows.scores = network.score().score(features, -answer);
  artifact = measured_on(artifact, x);
  const internal::PredictorCore predictor(artifact);
  for (const double alpha : {0.2, 0.5, 0.8}) {
    const ExportOptions options = {.levels = {Level(alpha)}};
    const auto found =
        run_exported(in_double(export_artifact(artifact, options)), x.to(torch::kDouble));
    const Regions ours = predictor.region(predictor.describe(x), Level(alpha));
    EXPECT_TRUE((found.at("lower") <= ours.lower).all().item<bool>()) << alpha;
    EXPECT_TRUE((found.at("upper") >= ours.upper).all().item<bool>()) << alpha;
  }
}

// Numbers of 16 bits: the file computes in 32 as fcp does, and keeps its types outside.
TEST(Export, NetworksOf16BitsComputeIn32) {
  torch::manual_seed(33);
  Graph graph = make_mlp({3, 8, 2});
  for (auto& [name, tensor] : graph.initializers) tensor = tensor.tensor().to(torch::kHalf);
  graph.inputs[0].type = graph.outputs[0].type = ElementType::kHalf;
  for (const std::string name : {"residual", "nested", "linearized"}) {
    const CalibrationArtifact artifact = calibrated_on_noise(graph, score_named(name), "h1");
    const Graph exported = export_artifact(artifact);
    EXPECT_EQ(exported.inputs[0].type, ElementType::kHalf);
    EXPECT_EQ(exported.outputs[0].type, ElementType::kHalf);
    const torch::Tensor x = torch::randn({20, 3}).to(torch::kHalf);
    const auto found = run_exported(exported, x);
    const internal::PredictorCore predictor(artifact);
    const Regions ours = predictor.region(predictor.describe(x), Level(0.1));
    EXPECT_EQ(found.at("y").scalar_type(), torch::kHalf);
    EXPECT_EQ(found.at("lower").scalar_type(), torch::kFloat);
    EXPECT_TRUE((found.at("lower").to(torch::kDouble) <= ours.lower).all().item<bool>()) << name;
    EXPECT_TRUE((found.at("upper").to(torch::kDouble) >= ours.upper).all().item<bool>()) << name;
  }
}

// linearized over more than perceptrons: other activations, a skip, a product, a mean.
TEST(Export, LinearizedThroughOrdinaryOperators) {
  torch::manual_seed(34);
  for (const std::string op : {"Softplus", "Elu", "Softsign", "Tanh", "Exp"}) {
    SCOPED_TRACE(op);
    Graph graph = make_mlp({4, 6, 6, 2});
    for (Node& node : graph.nodes) {
      if (node.op == "Relu") node.op = op;
    }
    graph.nodes.back().inputs[0] = "gated";
    graph.nodes.push_back(make_node("Sigmoid", {"h1"}, {"gate"}));
    graph.nodes.push_back(make_node("Mul", {"h2", "gate"}, {"product"}));
    graph.nodes.push_back(make_node("Add", {"product", "h1"}, {"gated"}));
    std::rotate(graph.nodes.begin() + 4, graph.nodes.begin() + 5, graph.nodes.end());
    graph.nodes.back().outputs = {"two"};
    graph.nodes.push_back(make_node("ReduceMean", {"two"}, {"y"},
                                    {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{1}}}));
    graph.outputs = {make_info("y", {kDynamic, 1})};
    expect_same_intervals(calibrated_on_noise(graph, score_named("linearized"), ""));
  }
}

// Heads with these operators: never narrower than fcp's own interval.
TEST(Export, NestedThroughEinsumAndInstanceNormalization) {
  torch::manual_seed(35);
  Graph graph = make_mlp({4, 6, 6});
  graph.outputs = {make_info("out", {kDynamic, 6})};
  graph.initializers["cube"] = torch::tensor({0, 2, 3}, torch::kLong);
  graph.initializers["flat"] = torch::tensor({0, 6}, torch::kLong);
  graph.initializers["scale"] = torch::tensor({1.5f, -0.5f});
  graph.initializers["bias"] = torch::tensor({0.1f, 0.2f});
  const Graph base = graph;
  const auto check = [&](std::vector<Node> nodes) {
    SCOPED_TRACE(nodes[0].op + " " + nodes.back().op);
    Graph head = base;
    head.nodes.insert(head.nodes.end(), nodes.begin(), nodes.end());
    CalibrationArtifact artifact;
    artifact.network = head;
    artifact.method.score = score_named("nested");
    artifact.method.cut = "h1";
    artifact.rows.scores.assign(20, 0.05);
    const torch::Tensor x = rows_for(head, 30);
    const auto found = run_exported(in_double(export_artifact(artifact)), x.to(torch::kDouble));
    const internal::PredictorCore predictor(artifact);
    const Regions ours = predictor.region(predictor.describe(x), Level(0.1));
    EXPECT_TRUE((found.at("lower").flatten(1) <= ours.lower).all().item<bool>());
    EXPECT_TRUE((found.at("upper").flatten(1) >= ours.upper).all().item<bool>());
    EXPECT_TRUE(found.at("lower").isfinite().all().item<bool>());
  };
  check({make_node("Reshape", {"y", "cube"}, {"c"}),
         make_node("InstanceNormalization", {"c", "scale", "bias"}, {"i"}),
         make_node("Reshape", {"i", "flat"}, {"out"})});
  check({make_node("Relu", {"y"}, {"p"}),
         make_node("Einsum", {"p", "y"}, {"out"}, {{"equation", std::string("ni,ni->ni")}})});
}

TEST(Rounding, IsKeptByItsText) {
  Rounding rounding;
  rounding.rows = 3;
  rounding.largest = {1, 2048};
  rounding.outputs["y"] = {0x1p-20, 4};
  rounding.score = {0x1p-9, 1};
  const Rounding again = read_rounding(rounding_text(rounding));
  EXPECT_EQ(again.largest, rounding.largest);
  EXPECT_EQ(again.outputs.at("y").difference, 0x1p-20);
  EXPECT_EQ(again.score.difference, 0x1p-9);
  EXPECT_THROW(read_rounding(R"({"rows":1,"largest":[0],"outputs":{},"logits":[0,0],)"
                             R"("score":[0,0],"ends":[0,0]})"),
               Error);
}

}  // namespace
}  // namespace fcp
