#include "fcp/network/rows_apart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

#include "tests/network/graphs.h"

namespace fcp {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// y = x − mean of x over the axis.
Graph minus_mean(int64_t axis) {
  Graph graph;
  graph.inputs = {make_info("x", {kDynamic, 4})};
  graph.outputs = {make_info("y", {kDynamic, 4})};
  graph.nodes = {make_node("ReduceMean", {"x"}, {"mean"},
                           {{"axes", std::vector<int64_t>{axis}}, {"keepdims", int64_t{1}}}),
                 make_node("Sub", {"x", "mean"}, {"y"})};
  return graph;
}

// softmax(x xᵀ) x: every row attends to all.
Graph attention_over_rows() {
  Graph graph;
  graph.inputs = {make_info("x", {kDynamic, 4})};
  graph.outputs = {make_info("y", {kDynamic, 4})};
  graph.nodes = {
      make_node("Transpose", {"x"}, {"t"}, {{"perm", std::vector<int64_t>{1, 0}}}),
      make_node("MatMul", {"x", "t"}, {"products"}),
      make_node("Softmax", {"products"}, {"shares"}, {{"axis", int64_t{1}}}),
      make_node("MatMul", {"shares", "x"}, {"y"}),
  };
  return graph;
}

TEST(RowsApart, NetworksThatAnswerEachRowPass) {
  torch::manual_seed(0);
  const torch::Tensor x = torch::randn({3, 4});
  EXPECT_NO_THROW(check_rows_apart(Network(minus_mean(1)), x));
  EXPECT_NO_THROW(check_rows_apart(Network(make_mlp({4, 50, 50, 2})), x));
  const Network deep(make_residual_network());
  EXPECT_NO_THROW(check_rows_apart(deep, torch::randn({3, 3, 6, 6})));
}

TEST(RowsApart, RowsThatMeetAreRefusedByNode) {
  torch::manual_seed(0);
  const torch::Tensor x = torch::randn({3, 4});
  EXPECT_THAT([&] { check_rows_apart(Network(minus_mean(0)), x); },
              ThrowsMessage<Error>(HasSubstr("they meet in ReduceMean node 'mean_node'")));
  EXPECT_THAT([&] { check_rows_apart(Network(attention_over_rows()), x); },
              ThrowsMessage<Error>(HasSubstr("they meet in MatMul node 'y_node'")));
  EXPECT_NO_THROW(check_rows_apart(Network(minus_mean(0)), x.narrow(0, 0, 1)));
}

TEST(RowsApart, BatchesOfFixedSizeAreTriedWithOtherRowsBeside) {
  torch::manual_seed(0);
  Graph graph = minus_mean(0);
  graph.inputs[0].shape[0] = graph.outputs[0].shape[0] = 3;
  EXPECT_THROW(check_rows_apart(Network(graph), torch::randn({3, 4})), Error);
}

}  // namespace
}  // namespace fcp
