// Compositions of all operators with bounds; thousands more in random_heads_slow_test.cc.
#include "tests/export/random_heads.h"

#include <string>

#include <gtest/gtest.h>
#include <torch/types.h>

namespace fcp {
namespace {

TEST(RandomHeads, AreSoundGrowObeyTheLawAndExport) {
  const HeadCounts counts = check_random_heads(1, 60);
  EXPECT_GT(counts.bounded, 54);
  EXPECT_GT(counts.linear, 30);
  EXPECT_GT(counts.exported, 18);
  EXPECT_GT(counts.law, 1500);
}

// x → x² → operator → y: the square overflows in balls that the law is promised for.
Graph head_that_overflows(const std::string& op) {
  Graph graph;
  graph.opset = 20;
  graph.inputs = {make_info("x", {kDynamic, 4})};
  graph.outputs = {make_info("y", {kDynamic, 4})};
  graph.initializers["scale"] = torch::tensor({1.0f, -2.0f, 0.5f, 1.5f});
  graph.nodes = {make_node("Mul", {"x", "x"}, {"square"}), make_node(op, {"square"}, {"y"})};
  if (op == "LayerNormalization") graph.nodes[1].inputs.push_back("scale");
  return graph;
}

// Their ranges are then whole: of a softmax from 0 to 1.
TEST(RandomHeads, NumbersThatOverflowOnTheWay) {
  torch::manual_seed(3);
  for (const char* op : {"Softmax", "LayerNormalization"}) {
    SCOPED_TRACE(op);
    const auto head = head_of(head_that_overflows(op));
    const Ball ball = {torch::randn({4, 4}), torch::full({4}, kLargestBall / 3), Norm::kInf, {}};
    expect_sound(head, ball, BoundMethod::kIbp, 0);
    expect_growing(head, ball, 0);
    EXPECT_GT(expect_law_of_head(head, 0), 20);
  }
  BoundOptions options;
  options.outward = false;
  const Ball ball = {torch::randn({4, 4}), torch::full({4}, kLargestBall), Norm::kInf, {}};
  const Range shares =
      make_bounds(head_of(head_that_overflows("Softmax")), options)->ranges(ball)[0];
  EXPECT_TRUE((shares.lower == 0).all().item<bool>() && (shares.upper == 1).all().item<bool>());
}

// x → x² → W x² → operator → y. Where x² overflows, 0 · ∞ leaves the ends of W x² no numbers, of
// which comparisons and products must not make any.
Graph head_behind_no_numbers(const std::string& op) {
  Graph graph;
  graph.opset = 20;
  graph.inputs = {make_info("x", {kDynamic, 4})};
  graph.outputs = {make_info("y")};
  graph.initializers["w"] = torch::randn({4, 4});
  graph.nodes = {make_node("Mul", {"x", "x"}, {"square"}),
                 make_node("MatMul", {"square", "w"}, {"g"})};
  if (op == "Mul") {
    graph.nodes.push_back(make_node(op, {"g", "x"}, {"y"}));
  } else if (op == "Mul by a constant") {
    graph.initializers["c"] = torch::randn({4});
    graph.nodes.push_back(make_node("Mul", {"g", "c"}, {"y"}));
  } else if (op == "MatMul") {
    graph.initializers["shape"] = torch::tensor({-1, 2, 2}, torch::kLong);
    graph.nodes.push_back(make_node("Reshape", {"g", "shape"}, {"a"}));
    graph.nodes.push_back(make_node("Reshape", {"x", "shape"}, {"b"}));
    graph.nodes.push_back(make_node("MatMul", {"a", "b"}, {"c"}));
    graph.nodes.push_back(make_node("Flatten", {"c"}, {"y"}));
  } else {
    graph.nodes.push_back(make_node(op, {"g"}, {"y"}));
  }
  return graph;
}

TEST(RandomHeads, WhatIsNotANumberOnTheWaySaysNothing) {
  torch::manual_seed(4);
  for (const char* op :
       {"Shrink", "Sign", "ThresholdedRelu", "Mul", "Mul by a constant", "MatMul"}) {
    SCOPED_TRACE(op);
    const auto head = head_of(head_behind_no_numbers(op));
    const Ball ball = {torch::randn({4, 4}), torch::full({4}, kLargestBall / 3), Norm::kInf, {}};
    expect_sound(head, ball, BoundMethod::kIbp, 0);
    expect_growing(head, ball, 0);
    EXPECT_GT(expect_law_of_head(head, 0), 20);
  }
}

}  // namespace
}  // namespace fcp
