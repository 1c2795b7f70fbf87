// Small files that ask for large tensors are refused before they get them.
#include "fcp/nn/runtime/tensor_memory.h"

#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/memory.h"
#include "fcp/nn/graph/inspect.h"
#include "fcp/nn/graph/simplify.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct SmallBudget {
  explicit SmallBudget(size_t bytes) { set_memory_budget(bytes); }
  ~SmallBudget() { set_memory_budget(0); }
};

Graph doubling(int concats) {
  Graph graph;
  graph.inputs = {make_info("x", {kDynamic, 4})};
  std::string at = "x";
  for (int i = 0; i < concats; ++i) {
    const std::string next = i + 1 == concats ? "y" : concat("t", i);
    graph.nodes.push_back(make_node("Concat", {at, at}, {next}, {{"axis", int64_t{1}}}));
    at = next;
  }
  graph.outputs = {make_info("y", {kDynamic, kDynamic})};
  return graph;
}

TEST(TensorMemory, FortyConcatsAreRefusedAtTheNodeThatWouldNotFit) {
  const SmallBudget budget(size_t{1} << 20);
  EXPECT_THAT(
      [] {
        Network(doubling(40)).run({torch::zeros({1, 4})});
      },
      ThrowsMessage<Error>(AllOf(HasSubstr("Concat node 't"),
                                 HasSubstr("more than the 1 MiB that it may have"),
                                 HasSubstr("more memory"))));
  EXPECT_EQ(Network(doubling(10)).run({torch::zeros({1, 4})})[0].numel(), 4096);
}

TEST(TensorMemory, ADeclaredInputIsRefusedBeforeItIsMade) {
  const SmallBudget budget(size_t{1} << 30);
  Graph graph = make_mlp({4, 2});
  graph.inputs = {make_info("x", {200000000, 4})};
  EXPECT_THAT([&] { inspect(graph, {}); },
              ThrowsMessage<Error>(AllOf(HasSubstr("input 'x'"), HasSubstr("3052 MiB"))));
}

TEST(TensorMemory, BroadcastsProductsAndCopiesAreForeseen) {
  const torch::Tensor column = torch::zeros({1000, 1}), row = torch::zeros({1, 2000});
  const auto expected = [](const char* op, const Tensors& inputs) {
    return expected_bytes(make_node(op, {}, {"y"}), inputs);
  };
  EXPECT_EQ(expected("Add", {column, row}), 8e6);
  EXPECT_EQ(expected("MatMul", {column, row}), 8e6);
  EXPECT_EQ(expected("Gemm", {column, row}), 8e6);
  EXPECT_EQ(expected("Concat", {column, column}), 8e3);
  EXPECT_EQ(expected("Tile", {row, torch::tensor({int64_t{500}, int64_t{1}})}), 4e6);
  EXPECT_EQ(expected("Expand", {row, torch::tensor({int64_t{500}, int64_t{2000}})}), 4e6);
  EXPECT_EQ(expected("ConstantOfShape", {torch::tensor({int64_t{10}, int64_t{10}})}), 400);
  EXPECT_EQ(expected("Relu", {row}), 0);

  const torch::Tensor matrices = torch::zeros({7, 5, 3}), stack = torch::zeros({11, 1, 3, 2});
  EXPECT_EQ(expected("MatMul", {matrices, stack}), 4 * 11 * 7 * 5 * 2);
  const torch::Tensor image = torch::zeros({2, 3, 10, 10}), kernel = torch::zeros({6, 3, 3, 3});
  EXPECT_EQ(expected("Conv", {image, kernel}), 4 * 2 * 6 * 8 * 8);
  EXPECT_EQ(expected("ConvTranspose", {image, torch::zeros({3, 6, 3, 3})}), 4 * 2 * 6 * 12 * 12);
  const auto numbers = [](std::vector<int64_t> list) { return torch::tensor(list); };
  EXPECT_EQ(expected("Pad", {image, numbers({0, 0, 1, 1, 0, 0, 1, 1})}), 4 * 2 * 3 * 12 * 12);
  EXPECT_EQ(expected("Resize", {image, {}, {}, numbers({2, 3, 50, 50})}), 4 * 2 * 3 * 50 * 50);
  EXPECT_EQ(expected("Resize", {image, {}, torch::tensor({1.0f, 1.0f, 4.0f, 4.0f})}),
            4 * 2 * 3 * 40 * 40);
  EXPECT_EQ(expected("Gather", {row, torch::zeros({30}, torch::kLong)}), 4 * 30 * 2000);
  EXPECT_EQ(expected("GatherND", {column, torch::zeros({30, 1}, torch::kLong)}), 4 * 30);
  EXPECT_EQ(expected("OneHot", {numbers({1, 2}), numbers({1000}), torch::zeros({2})}), 8000);
  EXPECT_EQ(expected("Range", {numbers({0}), numbers({1 << 20}), numbers({1})}), 8 << 20);
}

// Also what is made between the factors.
TEST(TensorMemory, EinsumIsForeseen) {
  const torch::Tensor a = torch::zeros({100}), b = torch::zeros({4, 50, 60});
  const auto expected = [](const char* equation, const Tensors& inputs) {
    return expected_bytes(make_node("Einsum", {}, {"y"}, {{"equation", std::string(equation)}}),
                          inputs);
  };
  EXPECT_EQ(expected("i,j->ij", {a, a}), 4e4);
  EXPECT_EQ(expected("i,j", {a, a}), 4e4);
  EXPECT_EQ(expected("i,j,k->ijk", {a, a, a}), 4e6);
  EXPECT_EQ(expected("i,j,i->j", {a, a, a}), 4e4);
  EXPECT_EQ(expected("...ij,...kj->...ik", {b, b}), 4 * 4 * 50 * 50);
  EXPECT_EQ(expected("i,i->", {a, a}), 4);
}

// Constants that are computed when the file is read, and states that a loop carries.
TEST(TensorMemory, ConstantsAndLoopsAreForeseen) {
  Graph graph;
  graph.inputs = {make_info("x", {kDynamic, 2})};
  graph.initializers["v"] = torch::zeros({20000});
  graph.nodes = {make_node("Einsum", {"v", "v"}, {"e"}, {{"equation", std::string("i,j->ij")}}),
                 make_node("ReduceMax", {"e"}, {"m"}, {{"keepdims", int64_t{0}}}),
                 make_node("Add", {"x", "m"}, {"y"})};
  graph.outputs = {make_info("y", {kDynamic, 2})};
  EXPECT_THAT([&] { fold_constants(graph); },
              ThrowsMessage<Error>(HasSubstr("Einsum node 'e_node': constants grow beyond")));

  // Two states, of which a trip doubles one and copies the other: together they are what counts.
  Graph body;
  body.inputs = {make_info("i"), make_info("go"), make_info("s"), make_info("t")};
  body.nodes = {make_node("Identity", {"go"}, {"goes"}),
                make_node("Concat", {"s", "t"}, {"s2"}, {{"axis", int64_t{1}}}),
                make_node("Relu", {"s2"}, {"t2"})};
  body.outputs = {make_info("goes"), make_info("s2"), make_info("t2")};
  Graph loop;
  loop.inputs = {make_info("x", {kDynamic, kDynamic})};
  loop.initializers["trips"] = torch::tensor(int64_t{40});
  loop.nodes = {make_node("Loop", {"trips", "", "x", "x"}, {"s", "t"})};
  loop.nodes[0].attributes["body"] = std::make_shared<const Graph>(std::move(body));
  loop.outputs = {make_info("s"), make_info("t")};
  const SmallBudget budget(size_t{16} << 20);
  // The fifth trip holds states of 2 x 4 MiB and makes 2 x 8 MiB of them.
  EXPECT_THAT(
      [&] {
        Network(loop).run({torch::zeros({1, 1 << 16})});
      },
      ThrowsMessage<Error>(HasSubstr("Relu node 't2_node': would take the network to 24 MiB")));
}

TEST(TensorMemory, WhatIsFreedAndViewsDoNotCount) {
  const SmallBudget budget(size_t{300} << 10);
  Graph graph;
  graph.inputs = {make_info("x", {kDynamic, 10000})};
  std::string at = "x";
  for (int i = 0; i < 50; ++i) {  // 40 kB each, two at a time
    const std::string next = concat("t", i);
    graph.nodes.push_back(make_node(i % 2 == 0 ? "Relu" : "Identity", {at}, {next}));
    at = next;
  }
  graph.outputs = {make_info(at, {kDynamic, 10000})};
  const torch::NoGradGuard no_gradients;
  EXPECT_EQ(Network(graph).run({torch::ones({1, 10000})})[0].numel(), 10000);
}

}  // namespace
}  // namespace fcp
