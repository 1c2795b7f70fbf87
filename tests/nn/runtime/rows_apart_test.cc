#include "fcp/nn/runtime/rows_apart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

#include "tests/nn/graphs.h"

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

// x [N, 8]: two boxes of a row and no more than those that do not overlap.
TEST(RowsApart, BoxesWithoutNumberAreRefused) {
  Graph graph;
  graph.inputs = {make_info("x", {kDynamic, 8})};
  graph.outputs = {make_info("y", {kDynamic, 3})};
  graph.initializers["boxed"] = torch::tensor({-1, 2, 4}, torch::kLong);
  graph.initializers["scored"] = torch::tensor({-1, 1, 2}, torch::kLong);
  graph.initializers["most"] = torch::tensor({2}, torch::kLong);
  graph.nodes = {make_node("Reshape", {"x", "boxed"}, {"boxes"}),
                 make_node("ReduceMax", {"boxes"}, {"best"},
                           {{"axes", std::vector<int64_t>{2}}, {"keepdims", int64_t{0}}}),
                 make_node("Reshape", {"best", "scored"}, {"scores"}),
                 make_node("NonMaxSuppression", {"boxes", "scores", "most"}, {"kept"}),
                 make_node("Cast", {"kept"}, {"y"}, {{"to", int64_t{1}}})};
  const torch::Tensor row = torch::tensor({0.0f, 0.0f, 1.0f, 1.0f, 2.0f, 2.0f, 3.0f, 3.0f});
  EXPECT_THAT(
      [&] {
        check_rows_apart(Network(graph), torch::stack({row, row, row}));
      },
      ThrowsMessage<Error>(
          HasSubstr("output 'y' has shape [2, 3] for one row, because NonMaxSuppression node "
                    "'kept_node' keeps any number of boxes")));
}

TEST(RowsApart, BatchesOfFixedSizeAreTriedWithOtherRowsBeside) {
  torch::manual_seed(0);
  Graph graph = minus_mean(0);
  graph.inputs[0].shape[0] = graph.outputs[0].shape[0] = 3;
  EXPECT_THROW(check_rows_apart(Network(graph), torch::randn({3, 4})), Error);
}

}  // namespace
}  // namespace fcp
