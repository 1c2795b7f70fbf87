// Convolutions over images whose channels lie side by side, against libtorch's in double precision.
#include "fcp/nn/kernels/cpu/dense_conv.h"

#include <cmath>
#include <limits>
#include <vector>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/nn/runtime/network.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

constexpr auto kLast = at::MemoryFormat::ChannelsLast;

struct ConvCase {
  int64_t channels, filters, side, kernel, stride, dilation;
  std::vector<int64_t> pads;  // as ONNX has them: begins, ends
};

const std::vector<ConvCase> kConvCases = {
    {1, 1, 4, 2, 1, 1, {0, 0, 0, 0}},    {3, 20, 23, 7, 2, 1, {3, 3, 3, 3}},
    {16, 24, 9, 3, 1, 1, {1, 1, 1, 1}},  {70, 33, 8, 3, 2, 1, {1, 0, 0, 2}},
    {20, 17, 15, 3, 1, 6, {6, 6, 6, 6}}, {24, 16, 7, 3, 1, 12, {12, 12, 12, 12}},
    {40, 8, 16, 1, 2, 1, {0, 0, 0, 0}},  {300, 21, 5, 3, 1, 1, {2, 1, 0, 3}},
    {17, 9, 33, 2, 3, 2, {0, 3, 1, 0}},  {32, 48, 17, 4, 4, 1, {0, 0, 0, 0}},
    {16, 8, 1, 1, 1, 1, {2, 2, 2, 2}},   {1, 16, 28, 3, 1, 1, {1, 1, 1, 1}},
    {6, 16, 14, 5, 1, 1, {0, 0, 0, 0}},  {2, 70, 13, 3, 2, 1, {0, 1, 1, 0}},
    {5, 130, 6, 1, 1, 1, {1, 0, 0, 1}},  {8, 40, 31, 5, 3, 1, {2, 2, 2, 2}},
    {3, 7, 300, 3, 1, 1, {1, 1, 1, 1}},  {4, 33, 9, 2, 1, 2, {1, 1, 1, 1}},
    {9, 12, 15, 7, 2, 1, {3, 3, 3, 3}},
};

torch::Tensor exact_of(const ConvCase& each, const torch::Tensor& x, const torch::Tensor& w,
                       const torch::Tensor& bias) {
  const std::vector<int64_t> strides(2, each.stride), dilations(2, each.dilation), none(2, 0);
  const torch::Tensor padded = torch::constant_pad_nd(
      x.to(torch::kDouble), {each.pads[1], each.pads[3], each.pads[0], each.pads[2]});
  return torch::convolution(padded, w.to(torch::kDouble), bias.to(torch::kDouble), strides, none,
                            dilations, /*transposed=*/false, none, 1);
}

Network network_of(const ConvCase& each, const torch::Tensor& w, const torch::Tensor& bias) {
  Graph graph;
  graph.inputs = {make_info("x", {kDynamic, kDynamic, kDynamic, kDynamic})};
  graph.outputs = {make_info("y", {kDynamic, kDynamic, kDynamic, kDynamic})};
  graph.initializers["w"] = w;
  graph.initializers["b"] = bias;
  graph.nodes = {make_node("Conv", {"x", "w", "b"}, {"y"},
                           {{"strides", std::vector<int64_t>(2, each.stride)},
                            {"dilations", std::vector<int64_t>(2, each.dilation)},
                            {"pads", each.pads}})};
  return Network(graph);
}

// Also: the same bits for a row alone, by the node alone, on two threads, and with gradients.
TEST(DenseConv, EqualsTheExactOne) {
  torch::manual_seed(1);
  for (const ConvCase& each : kConvCases) {
    const torch::Tensor x = torch::randn({3, each.channels, each.side, each.side + 1});
    const torch::Tensor w =
        torch::randn({each.filters, each.channels, each.kernel, each.kernel}) / 4;
    const torch::Tensor bias = torch::randn({each.filters});
    const Network network = network_of(each, w, bias);
    const torch::Tensor y = network.forward(x), exact = exact_of(each, x, w, bias);
    ASSERT_EQ(y.sizes(), exact.sizes());
    EXPECT_TRUE(y.is_contiguous());
    EXPECT_TRUE(torch::allclose(y.to(torch::kDouble), exact, 1e-5, 1e-4)) << w.sizes();
    EXPECT_TRUE(torch::equal(network.forward(x.narrow(0, 1, 1)), y.narrow(0, 1, 1)));
    EXPECT_TRUE(torch::equal(network.forward(x.contiguous(kLast)), y));
    EXPECT_TRUE(
        torch::equal(network.run({x}, [](const Step&, const Tensors&, const Tensors&) {})[0], y));
    const int before = at::get_num_threads();
    for (const int threads : {1, 2}) {
      at::set_num_threads(threads);
      EXPECT_TRUE(torch::equal(network.forward(x), y));
    }
    at::set_num_threads(before);
    const torch::Tensor in = x.clone().requires_grad_();
    const torch::Tensor out = network.forward(in), weights = torch::randn_like(out);
    EXPECT_TRUE(torch::equal(out.detach(), y)) << w.sizes();
    const torch::Tensor slope = torch::autograd::grad({out}, {in}, {weights})[0];
    const torch::Tensor wide = x.to(torch::kDouble).requires_grad_();
    const torch::Tensor expected = torch::autograd::grad({exact_of(each, wide, w, bias)}, {wide},
                                                         {weights.to(torch::kDouble)})[0];
    EXPECT_TRUE(torch::allclose(slope.to(torch::kDouble), expected, 1e-4, 1e-4)) << w.sizes();
  }
}

// 0 · weight where a strip of windows lies in the padding is left out, elsewhere it is not.
TEST(DenseConv, PaddingIsZeroWhateverTheWeights) {
  const ConvCase each = {16, 8, 12, 3, 1, 10, {10, 10, 10, 10}};
  const torch::Tensor w = torch::full({8, 16, 3, 3}, 1e30f);
  const torch::Tensor y =
      network_of(each, w, torch::zeros({8})).forward(torch::ones({1, 16, 12, 13}));
  EXPECT_TRUE(y.isfinite().all().item<bool>());
}

// An infinite weight meets the zeros of the padding, alone or beside other windows.
TEST(DenseConv, BitsDoNotDependOnTheBatchWhateverTheWeights) {
  torch::manual_seed(5);
  const ConvCase each = {16, 8, 7, 3, 1, 5, {5, 5, 5, 5}};
  torch::Tensor w = torch::randn({8, 16, 3, 3});
  w[2][3][0][1] = std::numeric_limits<float>::infinity();
  w[4][0][2][2] = NAN;
  const Network network = network_of(each, w, torch::zeros({8}));
  const torch::Tensor x = torch::randn({7, 16, 7, 8}), y = network.forward(x);
  for (int64_t row = 0; row < 7; ++row) {
    EXPECT_TRUE(torch::allclose(network.forward(x.narrow(0, row, 1)), y.narrow(0, row, 1), 0, 0,
                                /*equal_nan=*/true));
  }
}

TEST(DenseConv, TakesNoRowsAndGaps) {
  torch::manual_seed(6);
  const ConvCase each = {16, 8, 6, 3, 1, 1, {1, 1, 1, 1}};
  const Network network = network_of(each, torch::randn({8, 16, 3, 3}), torch::randn({8}));
  EXPECT_EQ(network.forward(torch::empty({0, 16, 6, 7})).sizes().vec(),
            (std::vector<int64_t>{0, 8, 6, 7}));
  const torch::Tensor wide = torch::randn({2, 16, 12, 7}), x = wide.slice(2, 0, 12, 2);
  EXPECT_TRUE(torch::equal(network.forward(x), network.forward(x.contiguous())));
}

}  // namespace
}  // namespace fcp
