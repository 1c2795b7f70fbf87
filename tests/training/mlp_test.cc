#include "fcp/training/mlp.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "fcp/base/error.h"

#include "tests/training/training_examples.h"

namespace fcp {
namespace {

TEST(MlpTest, DefaultIsThePapersNetwork) {
  const Mlp mlp({.inputs = 9, .outputs = 2});
  ASSERT_EQ(mlp.layers().size(), 4u);
  EXPECT_EQ(mlp.layers()[0].weight.sizes(), (std::vector<int64_t>{64, 9}));
  EXPECT_EQ(mlp.layers()[2].weight.sizes(), (std::vector<int64_t>{64, 64}));
  EXPECT_EQ(mlp.layers()[3].weight.sizes(), (std::vector<int64_t>{2, 64}));
  EXPECT_EQ(mlp.parameters().size(), size_t{64 * 10 + 2 * 64 * 65 + 2 * 65});
  EXPECT_TRUE(has_dropout(0) && !has_dropout(1) && has_dropout(2));
}

// Uniform in ±1/√inputs: never beyond, the extremes reached, the variance a third of the bound's
// square. With 4,096 weights the empirical variance is off by 10 % at 7 standard deviations.
TEST(MlpTest, InitialWeightsAreTorchsDistribution) {
  const Mlp mlp = initial_mlp({.inputs = 16}, 5);
  for (const DenseLayer& layer : mlp.layers()) {
    const double bound = 1 / std::sqrt(static_cast<double>(layer.weight.size(1)));
    EXPECT_LE(layer.weight.abs().max().item<double>(), bound * (1 + 1e-6));
    EXPECT_LE(layer.bias.abs().max().item<double>(), bound * (1 + 1e-6));
  }
  const torch::Tensor& weight = mlp.layers()[1].weight;
  EXPECT_GT(weight.max().item<double>(), 0.98 / 8);
  EXPECT_LT(weight.min().item<double>(), -0.98 / 8);
  EXPECT_NEAR(weight.square().mean().item<double>() * 3 * 64, 1, 0.1);
}

TEST(MlpTest, SeedDecidesTheWeights) {
  const Mlp a = initial_mlp({.inputs = 3}, 1), b = initial_mlp({.inputs = 3}, 1);
  const Mlp c = initial_mlp({.inputs = 3}, 2);
  EXPECT_TRUE(std::ranges::equal(a.parameters(), b.parameters()));
  EXPECT_FALSE(std::ranges::equal(a.parameters(), c.parameters()));
}

TEST(MlpTest, CopiesDoNotShareWeights) {
  const Mlp original = initial_mlp({.inputs = 3}, 1);
  Mlp copy = original;
  copy.parameters()[0] += 1;
  EXPECT_EQ(copy.layers()[0].weight[0][0].item<float>(), copy.parameters()[0]);
  EXPECT_NE(original.parameters()[0], copy.parameters()[0]);
}

TEST(MlpTest, JoinedNetworksAreBothNetworks) {
  const Mlp first = initial_mlp({.inputs = 5, .hidden = {7, 4}, .outputs = 2}, 1);
  const Mlp second = initial_mlp({.inputs = 5, .hidden = {3, 6}, .outputs = 1}, 2);
  const Mlp both = join_networks(first, second);
  EXPECT_EQ(both.options().hidden, (std::vector<int64_t>{10, 10}));
  const torch::Tensor x = tensor_of(normal_array(20, 5, 3));
  const torch::Tensor expected = torch::cat({first.forward(x), second.forward(x)}, 1);
  EXPECT_LT(largest_difference(both.forward(x), expected), 1e-6);
  EXPECT_THROW(join_networks(first, initial_mlp({.inputs = 4, .hidden = {3, 6}}, 1)), Error);
}

TEST(MlpTest, WithoutHiddenLayersItIsLinear) {
  const Mlp mlp = initial_mlp({.inputs = 2, .hidden = {}, .outputs = 1}, 1);
  const torch::Tensor x = tensor_of(normal_array(8, 2, 3));
  const torch::Tensor zero = mlp.forward(torch::zeros({1, 2}));
  EXPECT_LT(largest_difference(mlp.forward(x) + mlp.forward(-x), 2 * zero.expand({8, 1})), 1e-6);
}

}  // namespace
}  // namespace fcp
