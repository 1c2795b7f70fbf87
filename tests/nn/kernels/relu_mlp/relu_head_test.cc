#include "fcp/nn/kernels/relu_mlp/relu_head.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

torch::Tensor as_head(const ReluHead& head, const torch::Tensor& u) {
  const torch::Tensor hidden = torch::relu(u.flatten(1).matmul(head.w1.t()) + head.b1);
  return hidden.matmul(head.w2.t()) + head.b2;
}

void expect_same(const Graph& graph, const torch::Tensor& u, bool flattens = false) {
  const Network network(graph);
  const std::optional<ReluHead> head = match_relu_head(network, 0);
  ASSERT_TRUE(head.has_value());
  EXPECT_EQ(head->flattens, flattens);
  EXPECT_TRUE(takes_features(*head, u));
  EXPECT_TRUE(torch::allclose(as_head(*head, u), network.forward(u), 1e-5, 1e-6));
}

// u → MatMul, Add → Relu → MatMul, Add → y, the way TensorFlow and scikit-learn write layers.
Graph product_head(int64_t feature_rank) {
  Graph graph;
  graph.inputs = {make_info("u", feature_rank == 0 ? std::vector<int64_t>{}
                                                   : std::vector<int64_t>(feature_rank, kDynamic))};
  graph.outputs = {make_info("y")};
  graph.initializers = {{"a", torch::randn({4, 6})},
                        {"c", torch::randn({1, 6})},
                        {"b", torch::randn({6, 2})},
                        {"d", torch::randn({1})}};
  graph.nodes = {make_node("MatMul", {"u", "a"}, {"p"}), make_node("Add", {"c", "p"}, {"q"}),
                 make_node("Relu", {"q"}, {"h"}), make_node("MatMul", {"h", "b"}, {"s"}),
                 make_node("Add", {"s", "d"}, {"y"})};
  return graph;
}

TEST(ReluHead, Gemm) {
  torch::manual_seed(1);
  Graph graph = make_mlp({4, 7, 3});
  const torch::Tensor u = torch::randn({5, 4});
  expect_same(graph, u);
  graph.nodes[0].attributes = {{"alpha", 0.5f}, {"beta", 2.0f}};
  graph.initializers["w1"] = torch::randn({4, 7});
  graph.nodes[2].inputs.pop_back();  // no shift
  expect_same(graph, u);
}

TEST(ReluHead, ProductsAndShifts) {
  torch::manual_seed(2);
  Graph graph = product_head(2);
  expect_same(graph, torch::randn({5, 4}));
  graph.nodes[1] = make_node("Identity", {"p"}, {"q"});
  graph.nodes.push_back(make_node("Dropout", {"y"}, {"z"}));
  graph.outputs[0].name = "z";
  expect_same(graph, torch::randn({5, 4}));
}

TEST(ReluHead, UnitsOfTheTarget) {
  torch::manual_seed(7);
  for (const torch::Tensor& unit :
       {torch::full({1, 1}, 2.5), torch::randn({3}), torch::randn({1, 3})}) {
    Graph graph = make_mlp({4, 7, 3});
    graph.initializers["unit"] = unit;
    graph.nodes.push_back(make_node("Mul", {"y", "unit"}, {"scaled"}));
    graph.nodes.push_back(make_node("Mul", {"unit", "scaled"}, {"again"}));
    graph.outputs = {make_info("again")};
    expect_same(graph, torch::randn({5, 4}));
  }
  Graph graph = make_mlp({4, 7, 1});
  graph.initializers["wide"] = torch::randn({3});
  graph.nodes.push_back(make_node("Mul", {"y", "wide"}, {"three"}));
  graph.outputs = {make_info("three")};
  EXPECT_FALSE(match_relu_head(Network(graph), 0).has_value());  // one output made three
}

TEST(ReluHead, FlattenedFeatures) {
  torch::manual_seed(3);
  Graph graph = make_mlp({12, 7, 3});
  graph.inputs = {make_info("map", {kDynamic, 3, 2, 2})};
  graph.nodes.insert(graph.nodes.begin(), make_node("Flatten", {"map"}, {"x"}));
  expect_same(graph, torch::randn({5, 3, 2, 2}), true);
  const std::optional<ReluHead> head = match_relu_head(Network(graph), 0);
  EXPECT_FALSE(takes_features(*head, torch::randn({5, 3, 2, 3})));
  EXPECT_FALSE(takes_features(*head, torch::randn({12})));
}

TEST(ReluHead, OneOfTwoOutputs) {
  torch::manual_seed(4);
  Graph graph = make_mlp({4, 7, 3});
  graph.nodes.push_back(make_node("Tanh", {"y"}, {"curved"}));
  graph.outputs.push_back(make_info("curved"));
  const Network network(graph);
  EXPECT_TRUE(match_relu_head(network, 0).has_value());
  EXPECT_FALSE(match_relu_head(network, 1).has_value());
}

TEST(ReluHead, OthersAreNotMistaken) {
  torch::manual_seed(5);
  const auto matches = [](const Graph& graph) {
    return match_relu_head(Network(graph), 0).has_value();
  };
  EXPECT_FALSE(matches(make_mlp({4, 3})));
  EXPECT_FALSE(matches(make_mlp({4, 5, 5, 3})));
  EXPECT_FALSE(matches(make_residual_network()));
  Graph graph = make_mlp({4, 7, 3});
  graph.nodes[1].op = "Tanh";
  EXPECT_FALSE(matches(graph));
  graph = make_mlp({4, 7, 3});
  graph.initializers["b2"] = torch::randn({5, 1});  // a shift for each row
  EXPECT_FALSE(matches(graph));
  EXPECT_TRUE(matches(product_head(2)));
  EXPECT_FALSE(matches(product_head(3)));  // rows of rows
  EXPECT_FALSE(matches(product_head(0)));  // not known
  graph = make_mlp({4, 4, 3});
  graph.nodes[1] = make_node("Relu", {"z1"}, {"r1"});
  graph.nodes.insert(graph.nodes.begin() + 2, make_node("Add", {"r1", "x"}, {"h1"}));
  EXPECT_FALSE(matches(graph));  // the feature goes around the layer
}

TEST(ReluHead, TakesRowsThatHaveATruthForEachOutput) {
  const std::optional<ReluHead> head = match_relu_head(Network(make_mlp({4, 7, 3})), 0);
  ASSERT_TRUE(head.has_value());
  const torch::Tensor features = torch::zeros({2, 4});
  EXPECT_TRUE(takes_rows(*head, features, torch::zeros({2, 3})));
  EXPECT_TRUE(takes_rows(*head, features, torch::zeros({2, 3, 1})));
  EXPECT_FALSE(takes_rows(*head, features, torch::zeros({2, 1})));
  EXPECT_FALSE(takes_rows(*head, features, torch::zeros({3, 2})));
  EXPECT_FALSE(takes_rows(*head, features, torch::tensor(1.0)));
  EXPECT_FALSE(takes_rows(*head, torch::zeros({2, 5}), torch::zeros({2, 3})));
  EXPECT_FALSE(takes_rows(*head, torch::zeros({0, 4}), torch::zeros({0, 3})));
}

}  // namespace
}  // namespace fcp
