// What an output is, read from the nodes that make it.
#include "fcp/nn/graph/output_kind.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "fcp/nn/runtime/network.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

Graph followed_by(const std::vector<Node>& nodes) {
  Graph graph = make_mlp({3, 4, 5});
  graph.nodes.insert(graph.nodes.end(), nodes.begin(), nodes.end());
  graph.initializers["shape"] = torch::tensor({int64_t{0}, int64_t{5}}, torch::kLong);
  graph.initializers["least"] = torch::tensor(1e-7f);
  graph.initializers["axis"] = torch::tensor({int64_t{1}}, torch::kLong);
  graph.outputs = {make_info(nodes.back().outputs[0], {kDynamic, 5})};
  return graph;
}

// The softmax of the logits is what the output says.
void expect_meaning(const std::vector<Node>& nodes, OutputKind kind, const std::string& logits) {
  const Graph graph = followed_by(nodes);
  const std::string output = graph.outputs[0].name;
  const OutputMeaning meaning = output_meaning(graph, output);
  EXPECT_EQ(meaning.kind, kind) << output;
  EXPECT_EQ(meaning.logits, logits) << output;
  const torch::Tensor x = torch::randn({6, 3});
  torch::Tensor said = Network(graph).forward(x);
  if (kind == OutputKind::kLogProbabilities) said = said.exp();
  const torch::Tensor shares = torch::softmax(Network(logits_graph(graph, output)).forward(x), 1);
  if (kind == OutputKind::kPlain) {
    EXPECT_TRUE(torch::equal(shares, torch::softmax(said, 1)));
  } else {
    EXPECT_TRUE(torch::allclose(shares, said, 1e-5, 1e-6)) << output;
  }
}

TEST(OutputKind, LooksThroughNodesThatKeepTheNumbers) {
  torch::manual_seed(2);
  const Node softmax = make_node("Softmax", {"y"}, {"p"});
  expect_meaning({make_node("Identity", {"y"}, {"i"})}, OutputKind::kPlain, "");
  expect_meaning({softmax}, OutputKind::kProbabilities, "y");
  expect_meaning({make_node("LogSoftmax", {"y"}, {"l"})}, OutputKind::kLogProbabilities, "y");
  expect_meaning(
      {softmax, make_node("Identity", {"p"}, {"i"}),
       make_node("Cast", {"i"}, {"c"}, {{"to", int64_t{1}}}),
       make_node("Reshape", {"c", "shape"}, {"r"}), make_node("Clip", {"r", "least"}, {"clipped"})},
      OutputKind::kProbabilities, "y");
  expect_meaning({softmax, make_node("Log", {"p"}, {"l"})}, OutputKind::kLogProbabilities, "y");
  expect_meaning({make_node("LogSoftmax", {"y"}, {"l"}), make_node("Exp", {"l"}, {"e"})},
                 OutputKind::kProbabilities, "y");
}

TEST(OutputKind, QuotientsAndClassifiers) {
  torch::manual_seed(3);
  expect_meaning({make_node("Exp", {"y"}, {"e"}), make_node("ReduceSum", {"e", "axis"}, {"s"}),
                  make_node("Div", {"e", "s"}, {"q"})},
                 OutputKind::kProbabilities, "y");
  expect_meaning({make_node("Sigmoid", {"y"}, {"e"}), make_node("ReduceSum", {"e", "axis"}, {"s"}),
                  make_node("Div", {"e", "s"}, {"q"})},
                 OutputKind::kProbabilities, "");
  expect_meaning({make_node("Exp", {"y"}, {"e"}), make_node("ReduceSum", {"y", "axis"}, {"s"}),
                  make_node("Div", {"e", "s"}, {"q"})},
                 OutputKind::kPlain, "");
}

TEST(OutputKind, OneSigmoidIsAClassifierOfTwo) {
  torch::manual_seed(4);
  Graph graph = make_mlp({3, 1});
  graph.nodes.push_back(make_node("Sigmoid", {"y"}, {"p"}));
  graph.outputs = {make_info("p", {kDynamic, 1})};
  EXPECT_EQ(output_meaning(graph, "p").kind, OutputKind::kProbability);
  const torch::Tensor x = torch::randn({6, 3});
  const torch::Tensor shares = torch::softmax(Network(logits_graph(graph, "p")).forward(x), 1);
  const torch::Tensor p = Network(graph).forward(x);
  EXPECT_TRUE(torch::allclose(shares, torch::cat({1 - p, p}, 1), 1e-5, 1e-6));
}

}  // namespace
}  // namespace fcp
