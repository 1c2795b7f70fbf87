#include "fcp/calibrate/default_cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "fcp/base/error.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

TEST(DefaultCut, LeavesTwoLayersToTheHead) {
  const auto usual = [](const Graph& network) { return default_cut(network, {}).cut; };
  EXPECT_EQ(usual(make_mlp({3, 4, 4, 4, 1})), "h2");
  EXPECT_EQ(usual(make_mlp({3, 4, 4, 1})), "h1");
  EXPECT_EQ(usual(make_mlp({3, 4, 1})), "x");
  EXPECT_EQ(usual(make_mlp({3, 1})), "x");
  // Behind its first convolution only one layer is left.
  EXPECT_EQ(usual(make_residual_network()), "x");
}

TEST(DefaultCut, OfLabelsIsBeforeTheLastLayer) {
  EXPECT_EQ(default_cut(make_mlp({3, 4, 4, 5}), FeatureMarginOptions{}).cut, "h2");
  EXPECT_EQ(default_cut(make_mlp({3, 5}), FeatureMarginOptions{}).cut, "x");
}

// As SqueezeNet ends: the last layer has a ReLU behind it, and averages follow.
TEST(DefaultCut, OfLabelsIsBehindAReluThatFollowsTheLastLayer) {
  Graph graph = make_conv_head(2, 4, 3, 1);
  graph.nodes[2].outputs = {"z"};
  graph.nodes.push_back(make_node("Relu", {"z"}, {"r"}));
  graph.nodes.push_back(make_node("GlobalAveragePool", {"r"}, {"pooled"}));
  graph.nodes.push_back(make_node("Flatten", {"pooled"}, {"y"}));
  graph.outputs = {make_info("y", {kDynamic, 3})};
  graph.inputs[0].shape = {kDynamic, 2, 6, 6};
  EXPECT_EQ(default_cut(graph, FeatureMarginOptions{}).cut, "r");
}

// Time first, as recurrent networks have it: a tensor [2, N, 3] has no rows to be a feature of.
TEST(DefaultCut, HasTheRowsInFront) {
  Graph graph;
  graph.inputs = {make_info("x", {kDynamic, 6})};
  graph.outputs = {make_info("y", {kDynamic, 1})};
  graph.initializers = {{"shape", torch::tensor({-1, 2, 3}, torch::kLong)},
                        {"w1", torch::randn({3, 4})},
                        {"w2", torch::randn({4, 1})}};
  graph.nodes = {make_node("Reshape", {"x", "shape"}, {"v"}),
                 make_node("Transpose", {"v"}, {"t"}, {{"perm", std::vector<int64_t>{1, 0, 2}}}),
                 make_node("MatMul", {"t", "w1"}, {"m"}),
                 make_node("Tanh", {"m"}, {"h"}),
                 make_node("ReduceMean", {"h"}, {"r"},
                           {{"axes", std::vector<int64_t>{0}}, {"keepdims", int64_t{0}}}),
                 make_node("MatMul", {"r", "w2"}, {"y"})};
  EXPECT_EQ(default_cut(graph, {}).cut, "v");
}

TEST(DefaultCut, TakesASmallerFeatureAndSaysSo) {
  const CutChoice choice = default_cut(make_mlp({3, kLargestFeature + 1, 8, 1}), {});
  EXPECT_EQ(choice.cut, "h2");
  EXPECT_EQ(
      choice.note,
      "cut: taking 'h2' with 8 numbers per row, before the last layer; the feature before the "
      "last two, 'h1', has 4097");
  EXPECT_EQ(default_cut(make_mlp({3, kLargestFeature, 8, 1}), {}).note, "");
}

TEST(DefaultCut, LeavesNodesWithoutBoundsBeforeIt) {
  Graph graph = make_mlp({3, 4, 4, 4, 1});
  graph.nodes[3].op = "Hardmax";
  EXPECT_EQ(default_cut(graph, {}).cut, "h2");
  graph.nodes[5].op = "Hardmax";
  const CutChoice choice = default_cut(graph, {});
  EXPECT_EQ(choice.cut, "h3");
  EXPECT_EQ(choice.note,
            "cut: taking 'h3'; before it, at 'h2', Hardmax node 'h3_node' has no bounds");
  EXPECT_EQ(default_cut(graph, LinearizedOptions{}).cut, "h2");
  graph.nodes.back().outputs = {"last"};
  graph.nodes.push_back(make_node("Hardmax", {"last"}, {"y"}));
  EXPECT_THAT([&] { default_cut(graph, {}); },
              ::testing::ThrowsMessage<Error>(::testing::HasSubstr(
                  "this network has none: Hardmax node 'y_node' has no bounds")));
}

TEST(DefaultCut, LooksAtTheOutputThatIsAskedFor) {
  Graph graph = make_mlp({3, 4, 4, 4, 1});
  graph.nodes.push_back(make_node("Add", {"h1", "h2"}, {"other"}));
  graph.outputs.push_back(make_info("other", {kDynamic, 4}));
  EXPECT_EQ(default_cut(graph, ScoreOptions(NestedOptions{}, {.output = "y"})).cut, "h2");
  EXPECT_EQ(default_cut(graph, ScoreOptions(NestedOptions{}, {.output = "other"})).cut, "x");
}

}  // namespace
}  // namespace fcp
