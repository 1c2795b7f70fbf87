#include "fcp/search/front_layer.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

void expect_close(const torch::Tensor& a, const torch::Tensor& b) {
  EXPECT_TRUE(torch::allclose(a, b, 1e-4, 1e-4)) << (a - b).abs().max();
}

// A Aᵀ is A after Aᵀ, Aᵀ is the gradient of A, and the rest follows the front.
void expect_parts(const Graph& graph, const torch::Tensor& u) {
  const Network head(graph);
  const SplitHead parts = split_head(head);
  ASSERT_TRUE(parts.front);
  const torch::Tensor p = parts.front->forward(u);
  expect_close(parts.rest->run({p})[0], head.forward(u));
  const torch::Tensor g = torch::randn_like(p);
  const torch::Tensor at = u.clone().requires_grad_();
  const torch::Tensor pulled = torch::autograd::grad({parts.front->forward(at)}, {at}, {g})[0];
  expect_close(parts.front->transpose(g), pulled);
  const torch::Tensor zero = parts.front->forward(torch::zeros_like(u));
  expect_close(parts.front->gram(g), parts.front->forward(pulled) - zero);
}

TEST(FrontLayer, LinearPartsFitTogether) {
  torch::manual_seed(1);
  expect_parts(make_mlp({7, 5, 2}), torch::randn({4, 7}));
}

// Down to images of one row, one column and one place, where opposite borders meet.
TEST(FrontLayer, ConvolutionPartsFitTogether) {
  torch::manual_seed(2);
  for (const auto& [height, width] : {std::pair{6, 9}, {2, 2}, {1, 5}, {4, 1}, {1, 1}}) {
    SCOPED_TRACE(testing::Message() << height << " × " << width);
    expect_parts(make_conv_head(8, 3, 3, 1), torch::randn({2, 8, height, width}));
  }
  expect_parts(make_conv_head(4, 5, 1, 0), torch::randn({2, 4, 3, 3}));
}

// By tiles, which the image does not fill.
TEST(FrontLayer, WideConvolutionPartsFitTogether) {
  torch::manual_seed(4);
  Graph graph = make_conv_head(128, 64, 3, 1);
  graph.initializers["w1"] = graph.initializers["w1"].tensor() * 0.1;
  expect_parts(graph, torch::randn({2, 128, 13, 17}) * 0.3);
}

TEST(FrontLayer, LeavesOtherHeadsAlone) {
  torch::manual_seed(3);
  EXPECT_FALSE(split_head(Network(make_conv_head(8, 3, 3, 0))).front);   // no padding
  EXPECT_FALSE(split_head(Network(make_conv_head(3, 16, 3, 1))).front);  // A Aᵀ would cost more
  EXPECT_FALSE(split_head(Network(make_mlp({2, 5, 1}))).front);          // as here
  EXPECT_FALSE(split_head(Network(make_mlp({3, 1}))).front);             // no rest
  Graph strided = make_conv_head(8, 3, 3, 1);
  strided.nodes[0].attributes["strides"] = std::vector<int64_t>{2, 2};
  EXPECT_FALSE(split_head(Network(strided)).front);
  Graph skipped = make_mlp({4, 4, 4});
  skipped.nodes.push_back(make_node("Add", {"x", "y"}, {"sum"}));
  skipped.outputs = {make_info("sum", {kDynamic, 4})};
  EXPECT_FALSE(split_head(Network(skipped)).front);
}

}  // namespace
}  // namespace fcp
