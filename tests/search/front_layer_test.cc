#include "fcp/search/front_layer.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/memory.h"

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

// Convolutions by tiles against libtorch's direct ones in double precision.

namespace {

double largest_error(const torch::Tensor& found, const torch::Tensor& exact) {
  return (found.to(torch::kDouble) - exact).abs().max().item<double>() /
         exact.square().mean().sqrt().item<double>();
}

// Sizes that tiles fill and that they do not, one place, kernels of 3 and 5. Errors are relative to
// the mean size of a result; direct float32 has about 2e-6.
TEST(TileConvolution, IsTheConvolutionAndItsTranspose) {
  torch::manual_seed(4);
  for (const int64_t kernel : {3, 5}) {
    const torch::Tensor weight = torch::randn({6, 9, kernel, kernel});
    const TileConvolution tiles(weight);
    for (const auto& [height, width] : {std::pair{8, 16}, {11, 5}, {1, 1}, {17, 24}}) {
      SCOPED_TRACE(testing::Message() << kernel << ": " << height << " × " << width);
      const torch::Tensor x = torch::randn({3, 9, height, width});
      const torch::Tensor g = torch::randn({3, 6, height, width});
      const torch::Tensor w = weight.to(torch::kDouble);
      EXPECT_LT(largest_error(tiles.forward(x),
                              torch::conv2d(x.to(torch::kDouble), w, {}, 1, kernel / 2)),
                5e-6);
      EXPECT_LT(largest_error(tiles.transpose(g),
                              torch::conv_transpose2d(g.to(torch::kDouble), w, {}, 1, kernel / 2)),
                5e-6);
    }
  }
}

// Whatever the number of terms: the root mean square of the error is about 4e-7 of that of the
// results, where a direct sum in float32 has 2e-7 to 1e-6, and nothing in double precision.
TEST(TileConvolution, IsAccurateForManyChannels) {
  torch::manual_seed(5);
  const torch::Tensor weight = torch::randn({64, 300, 3, 3});
  const torch::Tensor x = torch::randn({7, 300, 16, 16}).relu();
  ASSERT_TRUE(TileConvolution::pays(weight, x));
  const torch::Tensor exact =
      torch::conv2d(x.to(torch::kDouble), weight.to(torch::kDouble), {}, 1, 1);
  const auto error = [&](const torch::Tensor& found) {
    return ((found.to(torch::kDouble) - exact).square().mean() / exact.square().mean())
        .sqrt()
        .item<double>();
  };
  EXPECT_LT(error(TileConvolution(weight).forward(x)), 1e-6);
  const torch::Tensor rounded = TileConvolution(weight.to(torch::kDouble)).forward(x);
  EXPECT_EQ(rounded.scalar_type(), torch::kFloat);
  EXPECT_LT(error(rounded), 4e-8);  // half a unit in the last place of float32
}

TEST(TileConvolution, PaysForWideLayersAndLargeImages) {
  const torch::Tensor wide = torch::empty({64, 64, 3, 3}), narrow = torch::empty({64, 32, 3, 3});
  EXPECT_TRUE(TileConvolution::pays(wide, torch::empty({1, 64, 16, 16})));
  EXPECT_FALSE(TileConvolution::pays(wide, torch::empty({1, 64, 4, 4})));
  EXPECT_FALSE(TileConvolution::pays(narrow, torch::empty({1, 32, 16, 16})));
  EXPECT_FALSE(TileConvolution::pays(torch::empty({64, 64, 1, 1}), torch::empty({1, 64, 16, 16})));
  set_memory_budget(1 << 20);
  EXPECT_FALSE(TileConvolution::pays(wide, torch::empty({1, 64, 16, 16})));
  set_memory_budget(0);
}

}  // namespace
}  // namespace fcp
