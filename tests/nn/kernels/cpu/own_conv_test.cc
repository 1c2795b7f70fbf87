// Pointwise and depthwise convolutions by our own loops against libtorch's in double precision.
#include "fcp/nn/kernels/cpu/own_conv.h"

#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/nn/runtime/network.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

Network conv_network(const torch::Tensor& w, const torch::Tensor& bias, int64_t group,
                     const std::vector<int64_t>& strides, const std::vector<int64_t>& pads) {
  Graph graph;
  graph.opset = 17;
  graph.inputs = {make_info("x", {kDynamic, kDynamic, kDynamic, kDynamic})};
  graph.outputs = {make_info("y", {kDynamic, kDynamic, kDynamic, kDynamic})};
  graph.initializers["w"] = w;
  std::vector<std::string> inputs = {"x", "w"};
  if (bias.defined()) {
    graph.initializers["b"] = bias;
    inputs.push_back("b");
  }
  graph.nodes = {
      make_node("Conv", inputs, {"y"}, {{"group", group}, {"strides", strides}, {"pads", pads}})};
  return Network(graph);
}

torch::Tensor exact_conv(const torch::Tensor& x, const torch::Tensor& w, const torch::Tensor& bias,
                         int64_t group, const std::vector<int64_t>& strides,
                         const std::vector<int64_t>& pads) {
  const torch::Tensor padded =
      torch::constant_pad_nd(x.to(torch::kDouble), {pads[1], pads[3], pads[0], pads[2]});
  const std::vector<int64_t> none = {0, 0}, ones = {1, 1};
  return torch::convolution(padded, w.to(torch::kDouble),
                            bias.defined() ? bias.to(torch::kDouble) : bias, strides, none, ones,
                            /*transposed=*/false, none, group);
}

// Equal to the exact one, with the same bits for a row alone and with gradients, which are right.
void expect_conv(const torch::Tensor& x, const torch::Tensor& w, const torch::Tensor& bias,
                 int64_t group, const std::vector<int64_t>& strides,
                 const std::vector<int64_t>& pads) {
  const Network network = conv_network(w, bias, group, strides, pads);
  const torch::Tensor y = network.forward(x);
  const torch::Tensor exact = exact_conv(x, w, bias, group, strides, pads);
  ASSERT_EQ(y.sizes(), exact.sizes());
  EXPECT_TRUE(torch::allclose(y.to(torch::kDouble), exact, 1e-5, 1e-5)) << x.sizes() << w.sizes();
  EXPECT_TRUE(torch::equal(network.forward(x.narrow(0, 1, 1)), y.narrow(0, 1, 1)));
  const torch::Tensor in = x.clone().requires_grad_();
  const torch::Tensor out = network.forward(in);
  EXPECT_TRUE(torch::equal(out.detach(), y));
  const torch::Tensor slope = torch::autograd::grad({out.sum()}, {in})[0];
  const torch::Tensor wide = x.to(torch::kDouble).requires_grad_();
  const torch::Tensor expected =
      torch::autograd::grad({exact_conv(wide, w, bias, group, strides, pads).sum()}, {wide})[0];
  EXPECT_TRUE(torch::allclose(slope.to(torch::kDouble), expected, 1e-4, 1e-4));
}

TEST(PointwiseConv, EqualsTheExactOne) {
  torch::manual_seed(1);
  for (const auto& [channels, filters, side] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{
           {1, 1, 1}, {3, 7, 5}, {16, 24, 13}, {300, 10, 7}, {24, 70, 56}}) {
    const torch::Tensor x = torch::randn({2, channels, side, side + 1});
    const torch::Tensor w = torch::randn({filters, channels, 1, 1}) / 4;
    ASSERT_TRUE(is_pointwise(x, w, {{1, 1}, {1, 1}, {0, 0}, {0, 0}, {side, side + 1}, 1}));
    expect_conv(x, w, torch::randn({filters}), 1, {1, 1}, {0, 0, 0, 0});
    expect_conv(x, w, {}, 1, {1, 1}, {0, 0, 0, 0});
  }
}

TEST(DepthwiseConv, EqualsTheExactOneAtAnyStrideAndPadding) {
  torch::manual_seed(2);
  for (const int64_t kernel : {1, 3, 4, 7}) {
    for (const int64_t stride : {1, 2, 3}) {
      for (const int64_t side : {7, 8, 33, 70}) {
        const int64_t pad = kernel / 2;
        const torch::Tensor x = torch::randn({2, 3, side + 1, side});
        const torch::Tensor w = torch::randn({3, 1, kernel, kernel});
        expect_conv(x, w, torch::randn({3}), 3, {stride, stride}, {pad, pad, pad, pad});
        expect_conv(x, w, {}, 3, {stride, 1}, {0, pad, 2, 0});
      }
    }
  }
  const torch::Tensor x = torch::randn({2, 3, 9, 9}), w = torch::randn({3, 1, 3, 3});
  EXPECT_TRUE(is_depthwise(x, w, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, {9, 9}, 3}));
  EXPECT_FALSE(is_depthwise(x, w, {{1, 1}, {2, 2}, {1, 1}, {1, 1}, {7, 7}, 3})) << "dilated";
  expect_conv(torch::randn({2, 4, 6, 5}), torch::randn({4, 1, 3, 3}), {}, 4, {2, 2}, {1, 1, 1, 1});
}

TEST(LargestInWindows, HasTheBitsOfLibtorchs) {
  torch::manual_seed(4);
  for (const int64_t kernel : {2, 3, 5}) {
    for (const int64_t stride : {1, 2, 3}) {
      for (const int64_t side : {5, 9, 40, 71}) {
        for (const bool ceil : {false, true}) {
          torch::Tensor x = torch::randn({2, 3, side, side + 2}) - 3;
          x[1][2][3][1] = NAN;
          x[0][0][0][0] = -std::numeric_limits<float>::infinity();
          const std::vector<int64_t> window = {kernel, kernel}, strides = {stride, stride},
                                     pads = {kernel / 2, kernel / 2}, ones = {1, 1};
          const torch::Tensor expected = torch::max_pool2d(x, window, strides, pads, ones, ceil);
          const ConvPlan plan = {strides, ones, pads, pads, expected.sizes().slice(2).vec(), 1};
          ASSERT_TRUE(has_planes(x, plan));
          const torch::Tensor found = largest_in_windows(x, window, plan);
          EXPECT_TRUE(torch::allclose(found, expected, 0, 0, /*equal_nan=*/true))
              << kernel << " " << stride << " " << side;
        }
      }
    }
  }
}

TEST(DepthwiseConv, AFilterWiderThanItsPlane) {
  torch::manual_seed(3);
  expect_conv(torch::randn({2, 2, 1, 1}), torch::randn({2, 1, 5, 5}), {}, 2, {2, 2}, {2, 2, 2, 2});
}

}  // namespace
}  // namespace fcp
