// Pointwise and depthwise convolutions by our own loops against libtorch's in double precision.

#include "fcp/nn/kernels/cpu/own_conv.h"

#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/nn/kernels/cpu/channel_windows.h"
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

// Windows over images whose channels lie side by side: to the last bit our own loops for the other
// layout.

namespace {

constexpr auto kWindowsLast = at::MemoryFormat::ChannelsLast;

bool same_numbers(const torch::Tensor& a, const torch::Tensor& b) {
  return torch::allclose(a, b, 0, 0, /*equal_nan=*/true);
}

struct WindowCase {
  int64_t channels, kernel, stride, height, width;
  std::vector<int64_t> pads;  // top, left, bottom, right
};

std::vector<WindowCase> window_cases() {
  std::vector<WindowCase> cases;
  for (const int64_t channels : {1, 2, 8, 16, 23, 40, 72, 150}) {
    for (const int64_t kernel : {1, 3, 5}) {
      for (const int64_t stride : {1, 2, 3}) {
        const int64_t pad = kernel / 2;
        cases.push_back({channels, kernel, stride, 11, 14, {pad, 0, pad, pad}});
      }
    }
  }
  cases.push_back({24, 5, 1, 2, 3, {2, 2, 2, 2}});  // no window lies within the image
  cases.push_back({24, 3, 1, 4, 40, {0, 0, 0, 0}});
  cases.push_back({16, 3, 4, 5, 7, {3, 4, 2, 4}});  // some lie wholly in the padding
  return cases;
}

ConvPlan plan_of(const WindowCase& each) {
  const int64_t k = each.kernel, s = each.stride;
  const std::vector<int64_t>& p = each.pads;
  return {{s, s},
          {1, 1},
          {p[0], p[1]},
          {p[2], p[3]},
          {(each.height + p[0] + p[2] - k) / s + 1, (each.width + p[1] + p[3] - k) / s + 1},
          each.channels};
}

TEST(ChannelWindows, HaveTheBitsOfPlanes) {
  torch::manual_seed(2);
  for (const WindowCase& each : window_cases()) {
    torch::Tensor x = torch::randn({2, each.channels, each.height, each.width});
    x[1][each.channels - 1][1][1] = NAN;
    const torch::Tensor w = torch::randn({each.channels, 1, each.kernel, each.kernel});
    const torch::Tensor bias = torch::randn({each.channels});
    const ConvPlan plan = plan_of(each);
    ChannelFilters filters;
    const ChannelWeights& weights = *filters.packed(w);
    EXPECT_TRUE(weights.finite);
    const torch::Tensor lying = x.contiguous(kWindowsLast),
                        planes = depthwise_conv(x, w, bias, plan);
    const torch::Tensor found = depthwise_channels(lying, w, bias, plan, weights);
    EXPECT_TRUE(same_numbers(found, planes))
        << each.channels << " " << each.kernel << " " << each.stride;
    EXPECT_TRUE(
        same_numbers(depthwise_channels(x, w, {}, plan, weights), depthwise_conv(x, w, {}, plan)));
    Epilogue epilogue;
    epilogue.activation = {ActivationKind::kHardSwish};
    epilogue.added = torch::randn({2, each.channels, plan.places[0], plan.places[1]});
    EXPECT_TRUE(same_numbers(depthwise_channels(lying, w, bias, plan, weights, epilogue),
                             activated(planes + epilogue.added, epilogue.activation)));
    EXPECT_TRUE(same_numbers(largest_in_channel_windows(lying, {each.kernel, each.kernel}, plan),
                             largest_in_windows(x, {each.kernel, each.kernel}, plan)));
    const int before = at::get_num_threads();
    at::set_num_threads(2);
    EXPECT_TRUE(same_numbers(depthwise_channels(lying, w, bias, plan, weights), found));
    at::set_num_threads(before);
  }
}

TEST(ChannelWindows, SayWhichWeightsAreNotFinite) {
  torch::Tensor w = torch::randn({3, 1, 2, 2});
  w[1][0][1][0] = -std::numeric_limits<float>::infinity();
  ChannelFilters filters;
  EXPECT_FALSE(filters.packed(w)->finite);
  w = torch::randn({3, 1, 2, 2});
  EXPECT_TRUE(filters.packed(w)->finite);
}

// Between convolutions, so that it meets both layouts; the mean in double precision is the truth.
TEST(ChannelWindows, AveragePoolGivesOneAnswerInBothLayouts) {
  torch::manual_seed(3);
  Graph graph;
  graph.inputs = {make_info("x", {kDynamic, 6, 9, 8})};
  graph.outputs = {make_info("y")};
  graph.initializers["w"] = torch::randn({20, 6, 1, 1});
  graph.nodes = {make_node("Conv", {"x", "w"}, {"c"}),
                 make_node("AveragePool", {"c"}, {"y"},
                           {{"kernel_shape", std::vector<int64_t>{3, 2}},
                            {"strides", std::vector<int64_t>{2, 1}}})};
  const Network network(graph);
  const torch::Tensor x = torch::randn({3, 6, 9, 8}), y = network.forward(x);
  const auto nothing = [](const Step&, const Tensors&, const Tensors&) {};
  EXPECT_TRUE(torch::equal(network.run({x}, nothing)[0], y));
  EXPECT_TRUE(torch::equal(network.forward(x.narrow(0, 2, 1)), y.narrow(0, 2, 1)));
  const torch::Tensor exact = torch::avg_pool2d(
      torch::convolution(x.to(torch::kDouble), graph.initializers["w"].tensor().to(torch::kDouble),
                         {}, {1, 1}, {0, 0}, {1, 1}, false, {0, 0}, 1),
      {3, 2}, {2, 1});
  EXPECT_TRUE(torch::allclose(y.to(torch::kDouble), exact, 1e-5, 1e-5));
  torch::Tensor in = x.clone().requires_grad_();
  EXPECT_TRUE(torch::equal(network.forward(in).detach(), y));
}

}  // namespace
}  // namespace fcp
