// If, Loop and Scan against the same computed step by step.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/graph/onnx_reader.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/nn/runtime/element_types.h"
#include "fcp/nn/runtime/network.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

using ::testing::HasSubstr;

TensorInfo typed(const std::string& name, torch::ScalarType type) {
  TensorInfo info = make_info(name);
  info.type = element_type(type);
  return info;
}

Graph inside(std::vector<TensorInfo> inputs, std::vector<TensorInfo> outputs,
             std::vector<Node> nodes) {
  Graph graph;
  graph.inputs = std::move(inputs);
  graph.outputs = std::move(outputs);
  graph.nodes = std::move(nodes);
  return graph;
}

Node with_body(Node node, Graph body, size_t captured, const std::string& name = "body") {
  node.attributes[name] = std::make_shared<const Graph>(std::move(body));
  node.captured = captured;
  return node;
}

// s ← w s + i until the largest is 100 or more, or `count` trips; y = h + s, and the parts are each
// trip's s. w comes from around the loop.
Graph looping() {
  Graph body = inside(
      {typed("i", torch::kLong), typed("go", torch::kBool), make_info("s"),
       typed("w", torch::ScalarType::Undefined)},
      {typed("goes", torch::kBool), make_info("next"), make_info("part")},
      {make_node("Mul", {"s", "w"}, {"ws"}),
       make_node("Cast", {"i"}, {"number"}, {{"to", int64_t{1}}}),
       make_node("Add", {"ws", "number"}, {"next"}),
       make_node("ReduceMax", {"next"}, {"most"}, {{"keepdims", int64_t{0}}}),
       make_node("Less", {"most", "limit"}, {"goes"}), make_node("Identity", {"next"}, {"part"})});
  body.initializers["limit"] = torch::tensor(100.0f);
  Graph graph;
  graph.inputs = {make_info("x", {kDynamic, 2}), typed("count", torch::kLong)};
  graph.outputs = {make_info("y", {kDynamic, 2}), make_info("parts")};
  graph.initializers["w"] = torch::tensor({2.0f, -1.0f});
  graph.nodes = {
      make_node("Relu", {"x"}, {"h"}),
      with_body(make_node("Loop", {"count", "", "h", "w"}, {"s", "parts"}), std::move(body), 1),
      make_node("Add", {"h", "s"}, {"y"})};
  return graph;
}

// ONNX Runtime refuses a body whose counter does not say that it is a single number.
TEST(ControlFlow, ShapesOfABodyAreWrittenAgain) {
  Graph graph = looping();
  const auto loop = [](auto& nodes) -> auto& {
    return *std::find_if(nodes.begin(), nodes.end(),
                         [](const auto& node) { return node.op == "Loop"; });
  };
  auto& body = std::get<Subgraph>(loop(graph.nodes).attributes.at("body"));
  Graph changed = *body;
  changed.inputs[0].known_rank = true;         // a single number
  changed.inputs[2] = make_info("s", {7, 2});  // which the rows contradict
  body = std::make_shared<const Graph>(changed);
  const Graph again = parse_onnx(serialize_onnx(graph), "written");
  const auto& kept = *std::get<Subgraph>(loop(again.nodes).attributes.at("body"));
  EXPECT_TRUE(kept.inputs[0].known_rank);
  EXPECT_TRUE(kept.inputs[0].shape.empty());
  EXPECT_FALSE(kept.inputs[1].known_rank);
  EXPECT_EQ(kept.inputs[2].shape, (std::vector<int64_t>{7, 2}));
  const Tensors inputs = {torch::ones({3, 2}), torch::tensor(int64_t{2})};
  EXPECT_TRUE(torch::equal(Network(again).run(inputs)[0], Network(looping()).run(inputs)[0]));
}

TEST(ControlFlow, ALoopEndsByItsCountOrItsCondition) {
  const Graph graph = looping();
  const Network network(graph), again(parse_onnx(serialize_onnx(graph), "again"));
  const torch::Tensor x = torch::tensor({{1.0f, 2.0f}, {3.0f, -4.0f}});
  for (const int64_t count : {1, 3, 50}) {
    torch::Tensor s = x.relu();
    Tensors parts;
    for (int64_t i = 0; i < count; ++i) {
      s = s * graph.initializers.at("w") + i;
      parts.push_back(s);
      if (s.max().item<float>() >= 100) break;
    }
    EXPECT_EQ(parts.size() == static_cast<size_t>(count), count < 50);
    for (const Network* each : {&network, &again}) {
      const Tensors found = each->run({x, torch::tensor(count, torch::kLong)});
      EXPECT_TRUE(torch::equal(found[0], x.relu() + s));
      EXPECT_TRUE(torch::equal(found[1], torch::stack(parts)));
    }
  }
  const Tensors none = network.run({x, torch::tensor(int64_t{0}, torch::kLong)});
  EXPECT_TRUE(torch::equal(none[0], 2 * x.relu()));
  EXPECT_EQ(none[1].size(0), 0);
}

TEST(ControlFlow, WhatALoopReadsFromAroundItIsSeenByCuts) {
  Graph graph = looping();
  graph.outputs.resize(1);
  EXPECT_EQ(find_leak(graph, "s"), "h");
  graph.nodes[2] = make_node("Neg", {"s"}, {"y"});
  const CutGraph parts = cut(graph, "s");
  const torch::Tensor x = torch::randn({3, 2}), count = torch::tensor(int64_t{2}, torch::kLong);
  const torch::Tensor feature = Network(parts.backbone).run({x, count})[0];
  EXPECT_TRUE(
      torch::equal(Network(parts.head).forward(feature), Network(graph).run({x, count})[0]));
  EXPECT_FALSE(Network(graph).steps()[1].op->differentiable());
}

// A tensor that changed its name around the node keeps its name inside.
TEST(ControlFlow, RenamedTensorsAreFoundInWrittenFiles) {
  Graph graph = looping();
  graph.initializers["another"] = graph.initializers.at("w");
  graph.initializers.erase("w");
  graph.nodes[1].inputs[3] = "another";
  const Tensors inputs = {torch::randn({3, 2}), torch::tensor(int64_t{4}, torch::kLong)};
  const Network again(parse_onnx(serialize_onnx(graph), "again"));
  EXPECT_TRUE(torch::equal(again.run(inputs)[0], Network(looping()).run(inputs)[0]));
}

// Sums of x along its second axis from the end, and of z along its first: two sequences.
TEST(ControlFlow, AScanGoesAlongTheAxesItNames) {
  Graph body = inside(
      {make_info("s"), make_info("a"), make_info("b")}, {make_info("next"), make_info("part")},
      {make_node("Add", {"s", "a"}, {"sum"}), make_node("Mul", {"sum", "b"}, {"p"}),
       make_node("Identity", {"sum"}, {"next"}), make_node("Identity", {"p"}, {"part"})});
  Graph graph;
  graph.inputs = {make_info("x", {kDynamic, 4}), make_info("z", {4})};
  graph.outputs = {make_info("last"), make_info("parts")};
  graph.initializers["zero"] = torch::zeros({3});
  Node scan = with_body(make_node("Scan", {"zero", "x", "z"}, {"last", "parts"}), body, 0);
  scan.attributes["num_scan_inputs"] = int64_t{2};
  scan.attributes["scan_input_axes"] = std::vector<int64_t>{1, 0};
  scan.attributes["scan_input_directions"] = std::vector<int64_t>{1, 0};
  scan.attributes["scan_output_axes"] = std::vector<int64_t>{-1};
  scan.attributes["scan_output_directions"] = std::vector<int64_t>{1};
  graph.nodes = {scan};
  const torch::Tensor x = torch::randn({3, 4}), z = torch::randn({4});
  torch::Tensor sum = torch::zeros({3});
  torch::Tensor expected = torch::zeros({3, 4});
  for (int64_t t = 0; t < 4; ++t) {
    sum = sum + x.select(1, 3 - t);
    expected.select(1, 3 - t).copy_(sum * z[t]);
  }
  const Tensors found = Network(graph).run({x, z});
  EXPECT_TRUE(torch::equal(found[0], sum));
  EXPECT_TRUE(torch::equal(found[1], expected));
  try {
    Network(graph).run({x, torch::randn({4})[0].expand({1})});
    ADD_FAILURE() << "lengths 4 and 1";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("expected [4]"));
  }
  graph.nodes[0].attributes["num_scan_inputs"] = int64_t{4};
  try {
    const Network network(graph);
    ADD_FAILURE() << "more sequences than inputs";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("has 3 inputs, 4 of them sequences"));
  }
}

// Nested graphs, and what the inner one reads from the outermost.
TEST(ControlFlow, ABranchInsideALoopReadsWhatIsAroundBoth) {
  const TensorInfo any = typed("w", torch::ScalarType::Undefined);
  const TensorInfo state = typed("s", torch::ScalarType::Undefined);
  Node choice = make_node("If", {"odd", "s", "w"}, {"next"});
  choice = with_body(choice,
                     inside({state, any}, {make_info("t")}, {make_node("Add", {"s", "w"}, {"t"})}),
                     2, "then_branch");
  choice = with_body(choice,
                     inside({state, any}, {make_info("e")}, {make_node("Mul", {"s", "w"}, {"e"})}),
                     2, "else_branch");
  Graph body =
      inside({typed("i", torch::kLong), typed("go", torch::kBool), make_info("s"), any},
             {typed("goes", torch::kBool), make_info("next")},
             {make_node("Identity", {"go"}, {"goes"}), make_node("Mod", {"i", "two"}, {"bit"}),
              make_node("Equal", {"bit", "one"}, {"odd"}), choice});
  body.initializers["one"] = torch::tensor(int64_t{1}, torch::kLong);
  body.initializers["two"] = torch::tensor(int64_t{2}, torch::kLong);
  Graph graph;
  graph.inputs = {make_info("x", {kDynamic, 2})};
  graph.outputs = {make_info("y", {kDynamic, 2})};
  graph.initializers["count"] = torch::tensor(int64_t{3}, torch::kLong);
  graph.initializers["w"] = torch::tensor({3.0f, -1.0f});
  graph.nodes = {with_body(make_node("Loop", {"count", "", "x", "w"}, {"y"}), body, 1)};
  const torch::Tensor x = torch::randn({4, 2}), w = graph.initializers.at("w");
  const torch::Tensor expected = (x * w + w) * w;
  EXPECT_TRUE(torch::equal(Network(graph).forward(x), expected));
  const Network again(parse_onnx(serialize_onnx(graph), "again"));
  EXPECT_TRUE(torch::equal(again.forward(x), expected));
}

// A loop of `outer` trips around one of `inner`, which gives back what it is given.
Graph loop_in_loop(int64_t outer, int64_t inner) {
  const std::vector<TensorInfo> given = {typed("i", torch::kLong), typed("go", torch::kBool),
                                         make_info("s")};
  const auto loop = [](int64_t count, const std::string& output, Graph body) {
    return std::vector<Node>{
        make_node("Constant", {}, {"count"}, {{"value", torch::tensor(count)}}),
        with_body(make_node("Loop", {"count", "", "s"}, {output}), std::move(body), 0)};
  };
  Graph body =
      inside(given, {typed("go", torch::kBool), make_info("next")},
             loop(inner, "next", inside(given, {typed("go", torch::kBool), make_info("s")}, {})));
  return inside({make_info("s", {kDynamic, 2})}, {make_info("y", {kDynamic, 2})},
                loop(outer, "y", std::move(body)));
}

TEST(ControlFlow, LoopsInLoopsEnd) {
  const torch::Tensor x = torch::ones({1, 2});
  const Network short_loops(loop_in_loop(100, 100));
  EXPECT_EQ(short_loops.run({x})[0].numel(), 2);
  EXPECT_EQ(short_loops.run({x})[0].numel(), 2) << "counted anew";
  EXPECT_THAT([&] { Network(loop_in_loop(1 << 19, 4)).run({x}); },
              testing::ThrowsMessage<Error>(HasSubstr("does not end in 1048576 trips")));
}

TEST(ControlFlowDeathTest, ALoopEndsByASignal) {
  const Network network(loop_in_loop(int64_t{1} << 62, 1));
  const auto run = [&] {
    catch_interrupts();
    std::raise(SIGTERM);
    try {
      network.run({torch::ones({1, 2})});
    } catch (const Interrupted& signal) {
      std::_Exit(signal.exit_code());
    }
    std::_Exit(0);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(143), "");
}

}  // namespace
}  // namespace fcp
