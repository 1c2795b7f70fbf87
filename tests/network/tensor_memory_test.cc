// Small files that ask for large tensors are refused before they get them.
#include "fcp/network/tensor_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/memory.h"
#include "fcp/network/inspect.h"

#include "tests/network/graphs.h"

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
