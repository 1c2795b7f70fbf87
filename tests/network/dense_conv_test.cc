// Convolutions over images whose channels lie side by side: against libtorch's in double precision,
// and to the last bit against our own loops for the other layout.
#include "fcp/network/dense_conv.h"

#include <cmath>
#include <limits>
#include <vector>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/network/channel_sums.h"
#include "fcp/network/channel_windows.h"
#include "fcp/network/network.h"

#include "tests/network/graphs.h"

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
    {16, 8, 1, 1, 1, 1, {2, 2, 2, 2}},
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

TEST(ChannelWindows, HaveTheBitsOfPlanes) {
  torch::manual_seed(2);
  for (const int64_t channels : {2, 16, 40}) {
    for (const int64_t kernel : {1, 3, 5}) {
      for (const int64_t stride : {1, 2, 3}) {
        torch::Tensor x = torch::randn({2, channels, 11, 14});
        x[1][1][3][1] = NAN;
        const torch::Tensor w = torch::randn({channels, 1, kernel, kernel});
        const torch::Tensor bias = torch::randn({channels});
        const int64_t pad = kernel / 2;
        ConvPlan plan = {{stride, stride}, {1, 1}, {pad, 0}, {pad, pad}, {}, channels};
        plan.places = {(11 + 2 * pad - kernel) / stride + 1, (14 + pad - kernel) / stride + 1};
        ChannelFilters filters;
        const torch::Tensor lying = x.contiguous(kLast);
        const auto same = [](const torch::Tensor& a, const torch::Tensor& b) {
          return torch::allclose(a, b, 0, 0, /*equal_nan=*/true);
        };
        EXPECT_TRUE(same(depthwise_channels(lying, w, bias, plan, filters),
                         depthwise_conv(x, w, bias, plan)));
        EXPECT_TRUE(
            same(depthwise_channels(x, w, {}, plan, filters), depthwise_conv(x, w, {}, plan)));
        Finish finish;
        finish.activation = {Bend::kHardSwish};
        finish.added = torch::randn({2, channels, plan.places[0], plan.places[1]});
        EXPECT_TRUE(
            same(depthwise_channels(lying, w, bias, plan, filters, finish),
                 activated(depthwise_conv(x, w, bias, plan) + finish.added, finish.activation)));
        if (2 * pad > kernel) continue;
        EXPECT_TRUE(same(largest_in_channel_windows(lying, {kernel, kernel}, plan),
                         largest_in_windows(x, {kernel, kernel}, plan)));
      }
    }
  }
}

// Also: one pass with what follows gives the bits of two, in either layout.
TEST(ChannelScale, EqualsBatchNormalization) {
  torch::manual_seed(4);
  for (const int64_t channels : {1, 5, 16, 37}) {
    Graph graph;
    graph.inputs = {make_info("x", {kDynamic, channels, kDynamic, kDynamic})};
    graph.outputs = {make_info("y")};
    const torch::Tensor scale = torch::randn({channels}), shift = torch::randn({channels});
    const torch::Tensor mean = torch::randn({channels}), variance = torch::rand({channels}) + 0.1;
    graph.initializers = {{"s", scale}, {"b", shift}, {"m", mean}, {"v", variance}};
    graph.nodes = {make_node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"n"}),
                   make_node("Relu", {"n"}, {"y"})};
    const Network network(graph);
    const torch::Tensor x = torch::randn({3, channels, 5, 4});
    const torch::Tensor y = network.forward(x);
    const auto wide = [](const torch::Tensor& t) { return t.to(torch::kDouble); };
    const torch::Tensor exact = torch::relu(torch::batch_norm(
        wide(x), wide(scale), wide(shift), wide(mean), wide(variance), false, 0, 1e-5f, false));
    EXPECT_TRUE(torch::allclose(wide(y), exact, 1e-5, 1e-5));
    EXPECT_TRUE(torch::equal(network.forward(x.contiguous(kLast)), y));
    EXPECT_TRUE(torch::equal(network.forward(x.narrow(0, 1, 1)), y.narrow(0, 1, 1)));
    EXPECT_TRUE(
        torch::equal(network.run({x}, [](const Step&, const Tensors&, const Tensors&) {})[0], y));
    const torch::Tensor in = x.clone().requires_grad_();
    EXPECT_TRUE(torch::equal(network.forward(in).detach(), y));
  }
}

TEST(ChannelSums, HaveTheBitsOfSumsOfRows) {
  torch::manual_seed(3);
  for (const int64_t channels : {2, 7, 16, 45}) {
    for (const int64_t side : {1, 2, 5, 14}) {
      const torch::Tensor x = torch::randn({3, channels, side, side + 2});
      const torch::Tensor expected = sum_along(x, {2, 3}, true);
      EXPECT_TRUE(torch::equal(channel_sums(x.contiguous(kLast)), expected));
      EXPECT_TRUE(torch::equal(sum_along(x.contiguous(kLast), {2, 3}, true), expected));
    }
  }
}

}  // namespace
}  // namespace fcp
