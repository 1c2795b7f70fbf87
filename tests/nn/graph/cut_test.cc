#include "fcp/nn/graph/cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/nn/runtime/network.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

using testing::ElementsAre;

std::string complaint(const Graph& graph, const std::string& where) {
  try {
    cut(graph, where);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Cut, HeadOfBackboneIsTheNetwork) {
  torch::manual_seed(0);
  for (const Graph& graph : {make_mlp({5, 7, 6, 2}), make_residual_network()}) {
    const Network whole(graph);
    std::vector<int64_t> shape = graph.inputs[0].shape;
    shape[0] = 4;
    const torch::Tensor x = torch::randn(shape);
    const torch::Tensor expected = whole.forward(x);
    const std::vector<std::string> cuts = valid_cuts(graph);
    ASSERT_GE(cuts.size(), 4u);
    for (const std::string& tensor : cuts) {
      const CutGraph parts = cut(graph, tensor);
      const torch::Tensor feature = Network(parts.backbone).forward(x);
      EXPECT_TRUE(torch::allclose(Network(parts.head).forward(feature), expected, 1e-5, 1e-5))
          << tensor;
    }
  }
}

TEST(Cut, ByTensorByNodeAndByLayers) {
  const Graph graph = make_mlp({5, 7, 6, 2});
  EXPECT_EQ(cut(graph, "h1").feature, "h1");
  EXPECT_EQ(cut(graph, "h1_node").feature, "h1");
  EXPECT_EQ(cut(graph, "-1").feature, "h2");
  EXPECT_EQ(cut(graph, "-2").feature, "h1");
  EXPECT_EQ(cut(graph, "1").feature, "h1");
  EXPECT_EQ(cut(graph, "0").feature, "x");
  EXPECT_EQ(cut(graph, "-3").feature, "x");
  EXPECT_EQ(count_layers(graph), 3u);
  EXPECT_EQ(complaint(graph, "3"),
            "cut '3': the network has 3 layers, so a cut is a number from -3 to 2");
  EXPECT_EQ(complaint(graph, "-4"),
            "cut '-4': the network has 3 layers, so a cut is a number from -3 to 2");
  EXPECT_THAT(complaint(graph, "nowhere"), testing::HasSubstr("no tensor or node of that name"));
}

TEST(Cut, OnlyTensorsThatSeparateTheGraph) {
  const Graph graph = make_residual_network();
  EXPECT_THAT(valid_cuts(graph), ElementsAre("x", "c1", "n1", "h1", "s", "h2"));
  EXPECT_EQ(complaint(graph, "c2"),
            "cut at 'c2': the outputs can be reached past it through 'h1'; `fcp inspect` lists the "
            "valid cuts");
  EXPECT_EQ(complaint(graph, "y"), "cut at 'y': it is an output, which leaves no head");
}

TEST(Cut, WeightsBehindACastCountAsLayers) {
  Graph graph = make_mlp({3, 4, 1});
  graph.initializers["w2_half"] = graph.initializers["w2"].tensor().to(torch::kHalf);
  graph.initializers.erase("w2");
  graph.nodes.insert(graph.nodes.begin(),
                     make_node("Cast", {"w2_half"}, {"w2"}, {{"to", int64_t{1}}}));
  EXPECT_EQ(count_layers(graph), 2u);
  EXPECT_EQ(cut(graph, "-1").feature, "h1");
  EXPECT_THAT(valid_cuts(graph), ElementsAre("x", "z1", "h1"));
}

TEST(Cut, EveryInputMustPassThroughIt) {
  Graph graph = make_mlp({3, 4, 1});
  graph.inputs.push_back(make_info("offset", {kDynamic, 1}));
  graph.nodes.push_back(make_node("Add", {"y", "offset"}, {"sum"}));
  graph.outputs = {make_info("sum")};
  EXPECT_EQ(*find_leak(graph, "h1"), "offset");
  EXPECT_TRUE(valid_cuts(graph).empty());
  EXPECT_THROW(extract(graph, {make_info("h1")}, graph.outputs), Error);
}

TEST(Cut, GradientsReachTheFeatureAndNotTheWeights) {
  torch::manual_seed(1);
  const CutGraph parts = cut(make_mlp({5, 7, 6, 2}), "h1");
  const Network head(parts.head);
  const torch::Tensor v = torch::randn({3, 7}, torch::kFloat).requires_grad_();
  head.forward(v).sum().backward();
  ASSERT_TRUE(v.grad().defined());
  const torch::Tensor& w2 = parts.head.initializers.at("w2");
  const torch::Tensor& w3 = parts.head.initializers.at("w3");
  const torch::Tensor open = (torch::addmm(parts.head.initializers.at("b2"), v, w2.t()) > 0);
  const torch::Tensor expected = (open * w3.sum(0)).matmul(w2);
  EXPECT_TRUE(torch::allclose(v.grad(), expected, 1e-5, 1e-6));
  for (const torch::Tensor& constant : head.constants()) {
    EXPECT_FALSE(constant.defined() && constant.requires_grad());
  }
}

TEST(Cut, ForwardAndGradientOnCudaAreThoseOfTheCpu) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "this machine has no CUDA device";
  torch::manual_seed(2);
  for (const auto& [graph, tensor] :
       {std::pair(make_mlp({5, 7, 6, 2}), "h1"), std::pair(make_residual_network(), "h1")}) {
    const CutGraph parts = cut(graph, tensor);
    std::vector<int64_t> shape = graph.inputs[0].shape;
    shape[0] = 4;
    const torch::Tensor x = torch::randn(shape);
    torch::Tensor values[2], gradients[2];
    for (const bool cuda : {false, true}) {
      const NetworkOptions options{.device = cuda ? torch::kCUDA : torch::kCPU};
      const torch::Tensor v = Network(parts.backbone, options).forward(x).detach().requires_grad_();
      const torch::Tensor y = Network(parts.head, options).forward(v);
      y.square().sum().backward();
      values[cuda] = y.detach().cpu();
      gradients[cuda] = v.grad().cpu();
    }
    EXPECT_TRUE(torch::allclose(values[0], values[1], 1e-3, 1e-4)) << tensor;
    EXPECT_TRUE(torch::allclose(gradients[0], gradients[1], 1e-3, 1e-4)) << tensor;
  }
}

// The head of y = reshape(tanh(z), [N, H, W]) asks the input's shape for N, H and W.
Graph make_shape_reader(bool batch_too) {
  Graph graph = make_mlp({6, 12});
  graph.inputs[0].shape = {kDynamic, 6};
  graph.outputs = {make_info("r")};
  graph.initializers["two"] = torch::tensor({int64_t{2}}, torch::kLong);
  graph.initializers["minus"] = torch::tensor({int64_t{-1}}, torch::kLong);
  graph.initializers["which"] = torch::tensor({int64_t{batch_too ? 0 : 1}}, torch::kLong);
  graph.nodes.push_back(make_node("Shape", {"x"}, {"shape"}));
  graph.nodes.push_back(make_node("Gather", {"shape", "which"}, {"n"}));
  graph.nodes.push_back(make_node("Tanh", {"y"}, {"t"}));
  const std::vector<std::string> sizes = batch_too ? std::vector<std::string>{"n", "two", "minus"}
                                                   : std::vector<std::string>{"minus", "two", "n"};
  graph.nodes.push_back(make_node("Concat", sizes, {"sizes"}, {{"axis", int64_t{0}}}));
  graph.nodes.push_back(make_node("Reshape", {"t", "sizes"}, {"r"}));
  return graph;
}

TEST(Cut, ShapesFromBeforeItAreNoLeak) {
  torch::manual_seed(3);
  for (const bool batch_too : {false, true}) {
    const Graph graph = make_shape_reader(batch_too);
    EXPECT_THAT(valid_cuts(graph), testing::ElementsAre("x", "y", "t"));
    const CutGraph parts = cut(graph, "y");
    const Network whole(graph), backbone(parts.backbone), head(parts.head);
    for (const int64_t rows : {1, 5}) {
      const torch::Tensor x = torch::randn({rows, 6});
      EXPECT_TRUE(torch::equal(head.forward(backbone.forward(x)), whole.forward(x)));
    }
  }
}

TEST(Cut, ShapesThatTheFileLeavesOpenAreALeak) {
  Graph graph = make_shape_reader(false);
  graph.inputs[0].shape = {kDynamic, kDynamic};
  EXPECT_THAT(valid_cuts(graph), testing::ElementsAre("x"));
  EXPECT_THROW(cut(graph, "y"), Error);
}

TEST(Cut, DoubleNetworksAnywhere) {
  torch::manual_seed(4);
  Graph graph = make_mlp({3, 5, 5, 1});
  graph.inputs[0].type = graph.outputs[0].type = ElementType::kDouble;
  for (auto& [name, value] : graph.initializers) value = value.tensor().to(torch::kDouble);
  const torch::Tensor x = torch::randn({4, 3}, torch::kDouble);
  const torch::Tensor y = Network(graph).forward(x);
  for (const std::string& tensor : valid_cuts(graph)) {
    const CutGraph parts = cut(graph, tensor);
    EXPECT_EQ(parts.head.inputs[0].type, ElementType::kDouble);
    const torch::Tensor feature = Network(parts.backbone).forward(x);
    EXPECT_TRUE(torch::equal(Network(parts.head).forward(feature), y)) << tensor;
  }
}

TEST(Cut, OtherOutputsDoNotMatterOnceOneIsSelected) {
  Graph graph = make_mlp({3, 5, 1});
  graph.nodes.push_back(make_node("Sigmoid", {"x"}, {"other"}));
  graph.outputs.push_back(make_info("other"));
  EXPECT_THAT(valid_cuts(graph), testing::ElementsAre("x"));
  EXPECT_THAT(valid_cuts(select_outputs(graph, {"y"})), testing::ElementsAre("x", "z1", "h1"));
  EXPECT_THROW(select_outputs(graph, {"none"}), Error);
}

// The sweep against the definition: no path from the input to an output avoids the tensor.
TEST(Cut, TheSweepFindsWhatTheDefinitionSays) {
  torch::manual_seed(5);
  for (int trial = 0; trial < 200; ++trial) {
    Graph graph;
    graph.inputs = {make_info("t0", {kDynamic, 2})};
    const int64_t count = 4 + trial % 9;
    for (int64_t i = 1; i <= count; ++i) {
      const auto pick = [&] {
        const int64_t back = torch::randint(1, std::min<int64_t>(i, 3) + 1, {1}).item<int64_t>();
        return concat("t", i - back);
      };
      graph.nodes.push_back(make_node("Add", {pick(), pick()}, {concat("t", i)}));
    }
    graph.outputs = {make_info(concat("t", count))};
    std::vector<std::string> expected;
    const std::vector<std::string> found = valid_cuts(graph);
    const Graph needed = select_outputs(graph, {graph.outputs[0].name});
    if (!find_leak(needed, "t0")) expected.push_back("t0");
    for (const Node& node : needed.nodes) {
      const std::string& tensor = node.outputs[0];
      if (tensor != graph.outputs[0].name && !find_leak(needed, tensor)) expected.push_back(tensor);
    }
    EXPECT_EQ(found, expected) << "trial " << trial;
  }
}

// Whole numbers, tensors of one axis and tensors whose first axis is not that of the rows.
TEST(FeatureCuts, HaveRowsOfRealNumbers) {
  torch::manual_seed(7);
  Graph graph = make_mlp({4, 6, 1});
  graph.initializers["axes"] = torch::tensor({int64_t{1}}, torch::kLong);
  graph.nodes.push_back(make_node("Squeeze", {"y", "axes"}, {"flat"}));
  graph.nodes.push_back(make_node("Exp", {"flat"}, {"rate"}));
  graph.outputs = {make_info("rate", {kDynamic})};
  EXPECT_THAT(valid_cuts(graph), testing::Contains("flat"));
  EXPECT_THAT(feature_cuts(graph), testing::ElementsAre("x", "z1", "h1", "y"));

  graph = make_mlp({4, 6, 1});
  graph.nodes.insert(graph.nodes.begin(),
                     {make_node("Floor", {"x"}, {"floor"}),
                      make_node("Cast", {"floor"}, {"whole"}, {{"to", int64_t{7}}}),
                      make_node("Cast", {"whole"}, {"back"}, {{"to", int64_t{1}}}),
                      make_node("Transpose", {"back"}, {"turned"}),
                      make_node("Transpose", {"turned"}, {"again"})});
  graph.nodes[5].inputs[0] = "again";
  EXPECT_THAT(valid_cuts(graph), testing::Not(testing::Contains("whole")));
  EXPECT_THAT(feature_cuts(graph), testing::ElementsAre("x", "floor", "back", "again", "z1", "h1"));
}

}  // namespace
}  // namespace fcp
