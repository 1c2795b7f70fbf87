#include "fcp/nn/graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

#include "tests/nn/nodes.h"

namespace fcp {
namespace {

std::string complaint(Graph graph) {
  try {
    sort_and_check(graph);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Graph, NodesAreBroughtIntoOrder) {
  Graph graph = make_layers();
  std::reverse(graph.nodes.begin(), graph.nodes.end());
  sort_and_check(graph);
  std::vector<std::string> order;
  for (const Node& node : graph.nodes) order.push_back(node.outputs[0]);
  EXPECT_THAT(order, testing::ElementsAre("z1", "h1", "y"));
}

TEST(Graph, FaultsAreNamed) {
  Graph graph = make_layers();
  EXPECT_EQ(complaint(graph), "");

  Graph missing = graph;
  missing.nodes[1].inputs[0] = "ghost";
  EXPECT_EQ(complaint(missing), "Relu node 'h1_node': needs 'ghost', which nothing makes");

  Graph cycle = graph;
  cycle.nodes[0].inputs[0] = "h1";
  EXPECT_EQ(complaint(cycle), "Gemm node 'z1_node': is part of a cycle");

  Graph twice = graph;
  twice.nodes[1].outputs[0] = "y";
  EXPECT_THAT(complaint(twice), testing::HasSubstr("makes 'y', which exists already"));

  Graph shadow = graph;
  shadow.nodes[1].outputs[0] = "w1";
  EXPECT_THAT(complaint(shadow), testing::HasSubstr("makes 'w1', which exists already"));

  Graph no_output = graph;
  no_output.outputs[0].name = "z";
  EXPECT_EQ(complaint(no_output), "output 'z' is made by no node");
  no_output.outputs.clear();
  EXPECT_EQ(complaint(no_output), "the network has no output");

  Graph both = graph;
  both.inputs.push_back(make_info("w1"));
  EXPECT_EQ(complaint(both), "'w1' is both an input and an initializer");
  Graph doubled = graph;
  doubled.inputs.push_back(make_info("x"));
  EXPECT_EQ(complaint(doubled), "input 'x' appears twice");
}

TEST(Graph, ANodeWithoutNameIsKnownByItsOutput) {
  Node node = make_node("Relu", {"a"}, {"b"});
  EXPECT_EQ(describe(node), "Relu node 'b_node'");
  node.name.clear();
  EXPECT_EQ(describe(node), "Relu node making 'b'");
}

}  // namespace
}  // namespace fcp
