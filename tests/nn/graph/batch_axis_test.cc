#include "fcp/nn/graph/batch_axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "fcp/nn/runtime/network.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

using ::testing::ElementsAre;

// Sequences [5, N, 3] and a state [1, N, 2] to the last hidden state [N, 2] or, as `all`, to all of
// them [5, N, 2].
Graph recurrent(bool all, const std::string& name) {
  Graph graph;
  graph.inputs = {make_info("x", {5, kDynamic, 3}), make_info("h", {1, kDynamic, 2})};
  for (TensorInfo& input : graph.inputs) input.dimension_names[1] = name;
  graph.outputs = {make_info("y", {kDynamic, 2})};
  if (all) graph.outputs = {make_info("y", {5, kDynamic, 2})};
  graph.initializers = {{"w", torch::randn({1, 6, 3})},
                        {"r", torch::randn({1, 6, 2})},
                        {"b", torch::randn({1, 12})},
                        {"axis", torch::tensor(std::vector<int64_t>{all ? 1 : 0})}};
  graph.nodes = {make_node("GRU", {"x", "w", "r", "b", "", "h"}, {"steps", "last"},
                           {{"hidden_size", int64_t{2}}}),
                 make_node("Squeeze", {all ? "steps" : "last", "axis"}, {"y"})};
  return graph;
}

TEST(BatchAxis, SequencesComeRowByRow) {
  for (const char* name : {"batch", "x_dynamic_axes_1"}) {
    const Graph graph = recurrent(false, name);
    const Graph moved = with_rows_first(graph);
    EXPECT_THAT(moved.inputs[0].shape, ElementsAre(kDynamic, 5, 3));
    EXPECT_THAT(moved.inputs[1].shape, ElementsAre(kDynamic, 1, 2));
    EXPECT_EQ(moved.inputs[0].name, "x");
    const torch::Tensor x = torch::randn({4, 5, 3}), h = torch::randn({4, 1, 2});
    EXPECT_TRUE(torch::equal(Network(moved).run({x, h})[0],
                             Network(graph).run({x.transpose(0, 1), h.transpose(0, 1)})[0]));
  }
}

TEST(BatchAxis, SequencesOfAnswersToo) {
  const Graph graph = recurrent(true, "batch_size");
  const Graph moved = with_rows_first(graph);
  EXPECT_THAT(moved.outputs[0].shape, ElementsAre(kDynamic, 5, 2));
  const torch::Tensor x = torch::randn({4, 5, 3}), h = torch::randn({4, 1, 2});
  EXPECT_TRUE(
      torch::equal(Network(moved).run({x, h})[0],
                   Network(graph).run({x.transpose(0, 1), h.transpose(0, 1)})[0].transpose(0, 1)));
}

// One sequence of any length, whose answers say nothing of rows, stays one row.
TEST(BatchAxis, AnOpenLengthIsNoBatch) {
  Graph graph;
  graph.inputs = {make_info("x", {1, kDynamic, 3})};
  graph.outputs = {make_info("y", {1, 3})};
  graph.nodes = {make_node("ReduceMean", {"x"}, {"y"},
                           {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{0}}})};
  EXPECT_THAT(with_rows_first(graph).inputs[0].shape, ElementsAre(1, kDynamic, 3));
  EXPECT_EQ(with_rows_first(make_mlp({3, 4, 2})).nodes.size(), make_mlp({3, 4, 2}).nodes.size());
}

// As skl2onnx writes perceptrons: right of one target, and of two they stand below each other.
TEST(BatchAxis, NumbersOfARowStandSideBySide) {
  for (const int64_t targets : {1, 2}) {
    Graph graph = make_mlp({3, 4, targets});
    graph.initializers["flat"] = torch::tensor(std::vector<int64_t>{-1, 1});
    graph.nodes.push_back(make_node("Reshape", {"y", "flat"}, {"variable"}));
    graph.outputs = {make_info("variable", {kDynamic, 1})};
    const Graph changed = with_rows_first(graph);
    EXPECT_THAT(changed.outputs[0].shape, ElementsAre(kDynamic, targets));
    EXPECT_EQ(changed.outputs[0].name, "variable");
    const torch::Tensor x = torch::randn({5, 3});
    const torch::Tensor expected = Network(graph).forward(x).reshape({5, targets});
    EXPECT_TRUE(torch::equal(Network(changed).forward(x), expected));
  }
}

}  // namespace
}  // namespace fcp
