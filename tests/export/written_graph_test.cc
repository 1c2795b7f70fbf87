// The graphs that export writes: operator sets, names, what they keep, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/export/export.h"

#include "tests/bounds/heads.h"
#include "tests/export/artifacts.h"
#include "tests/nn/graphs.h"

namespace fcp {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

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
      score.set(field::norm, norm);
      expect_same_intervals(calibrated_on_noise(graph, score, "h1"));
    }
    expect_same_intervals(calibrated_on_noise(graph, {}, "h1"));
    for (const std::string name : {"lac", "feature_margin", "raps"}) {
      const ScoreOptions score = exact_score(name);
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
  bad.method.calibration = LocalizedOptions{};
  expect_refused(bad, "localized calibration gives each row a radius of its own");
  bad.method.calibration = GroupedOptions{.group = "region"};
  expect_refused(bad, "told by 'region', which is not an input of the network");
  bad = good;
  bad.method.score.find(field::bound)->method = BoundMethod::kCrown;
  expect_refused(bad, "bounds by crown walk backwards");
  bad = good;
  bad.method.score.find(field::bound)->outward = true;
  expect_refused(bad, "bounds that hold every rounding");
  bad = good;
  bad.method.score = SurrogateOptions{};
  expect_refused(bad, "surrogate searches features by gradient descent");
  bad.method.score = FeatureSampledOptions{};
  expect_refused(bad, "calibrate with feature_margin to export");
  bad.method.score = RapsOptions{};
  expect_refused(bad, "calibrate with --not-randomized to export");
  bad.method.score = FeatureMarginOptions{};
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
  bad.method.score = LinearizedOptions{};
  for (Node& node : bad.network.nodes) {
    if (node.op == "Relu") node.op = "Selu";
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
