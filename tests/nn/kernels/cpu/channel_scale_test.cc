// Scales, joins and sums of channels that lie side by side: against libtorch's in double precision,
// and to the last bit against the loops for the other layout.
#include "fcp/nn/kernels/cpu/channel_scale.h"

#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/nn/kernels/cpu/epilogue.h"
#include "fcp/nn/kernels/cpu/row_product.h"
#include "fcp/nn/runtime/network.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

constexpr auto kScaleLast = at::MemoryFormat::ChannelsLast;

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
    EXPECT_TRUE(torch::equal(network.forward(x.contiguous(kScaleLast)), y));
    EXPECT_TRUE(torch::equal(network.forward(x.narrow(0, 1, 1)), y.narrow(0, 1, 1)));
    EXPECT_TRUE(
        torch::equal(network.run({x}, [](const Step&, const Tensors&, const Tensors&) {})[0], y));
    const torch::Tensor in = x.clone().requires_grad_();
    EXPECT_TRUE(torch::equal(network.forward(in).detach(), y));
  }
}

TEST(ChannelScale, JoinsWhatLiesSideBySide) {
  torch::manual_seed(5);
  const std::vector<torch::Tensor> parts = {torch::randn({2, 32, 3, 5}).contiguous(kScaleLast),
                                            torch::randn({2, 7, 3, 5}).contiguous(kScaleLast),
                                            torch::randn({2, 2, 3, 5}).contiguous(kScaleLast)};
  ASSERT_TRUE(join_side_by_side(parts));
  const torch::Tensor whole = torch::cat(parts, 1);
  EXPECT_TRUE(torch::equal(joined_channels(parts, nullptr), whole));
  EXPECT_TRUE(channels_lie_last(joined_channels(parts, nullptr)));
  ChannelLines lines;
  for (int i = 0; i < 41; ++i) {
    lines.scale.push_back(0.1f * static_cast<float>(i) - 1);
    lines.shift.push_back(0.3f - 0.05f * static_cast<float>(i));
  }
  for (const ActivationKind bend :
       {ActivationKind::kNone, ActivationKind::kRelu, ActivationKind::kGelu}) {
    EXPECT_TRUE(torch::equal(joined_channels(parts, &lines, {bend}),
                             scaled_channels(whole.contiguous(), lines, {bend})));
  }
  EXPECT_FALSE(join_side_by_side({parts[0], parts[1].contiguous()})) << "places side by side";
  EXPECT_FALSE(join_side_by_side({parts[0], parts[1].to(torch::kDouble)}));
  EXPECT_FALSE(join_side_by_side({parts[0], torch::randn({2, 2, 5, 3}).contiguous(kScaleLast)}));
}

// A changed statistic is seen, and not taken from the last call.
TEST(ChannelScale, LinesFollowTheStatistics) {
  torch::Tensor scale = torch::ones({2}), zero = torch::zeros({2}), one = torch::ones({2});
  LineCache cache;
  EXPECT_EQ(cache.lines({scale, zero, zero, one}, 0)->scale, (std::vector<float>{1, 1}));
  scale.mul_(3);
  EXPECT_EQ(cache.lines({scale, zero, zero, one}, 0)->scale, (std::vector<float>{3, 3}));
  EXPECT_EQ(cache.lines({scale, zero, zero, one}, 3)->scale, (std::vector<float>{1.5, 1.5}));
  EXPECT_EQ(cache.lines({scale, one, one, one}, 3)->shift, (std::vector<float>{-0.5, -0.5}));
}

TEST(ChannelSums, HaveTheBitsOfSumsOfRows) {
  torch::manual_seed(3);
  for (const int64_t channels : {2, 7, 16, 45}) {
    for (const int64_t side : {1, 2, 5, 14}) {
      const torch::Tensor x = torch::randn({3, channels, side, side + 2});
      const torch::Tensor expected = sum_along(x, {2, 3}, true);
      EXPECT_TRUE(torch::equal(channel_sums(x.contiguous(kScaleLast)), expected));
      EXPECT_TRUE(torch::equal(sum_along(x.contiguous(kScaleLast), {2, 3}, true), expected));
    }
  }
}

}  // namespace
}  // namespace fcp
