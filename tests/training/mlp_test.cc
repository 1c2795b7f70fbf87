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
namespace {

// The gradient by autograd of Σ predictions · direction.
torch::Tensor autograd_gradient(const Mlp& mlp, const torch::Tensor& x,
                                const torch::Tensor& direction) {
  std::vector<torch::Tensor> weights;
  torch::Tensor value = x;
  for (size_t i = 0; i < mlp.layers().size(); ++i) {
    weights.push_back(mlp.layers()[i].weight.clone().requires_grad_(true));
    weights.push_back(mlp.layers()[i].bias.clone().requires_grad_(true));
    value = torch::linear(value, weights[2 * i], weights[2 * i + 1]);
    if (i + 1 < mlp.layers().size()) value = value.relu();
  }
  (value * direction).sum().backward();
  std::vector<torch::Tensor> flat;
  for (const torch::Tensor& weight : weights) flat.push_back(weight.grad().flatten());
  return torch::cat(flat);
}

torch::Tensor our_gradient(Backpropagation& pass, const Array& x, const Array& direction) {
  std::ranges::copy(x.values, pass.inputs(static_cast<int64_t>(x.rows())).begin());
  pass.forward(nullptr);
  std::ranges::copy(direction.values, pass.output_gradient().begin());
  const std::span<const float> gradient = pass.backward();
  return tensor_of(gradient, {static_cast<int64_t>(gradient.size())});
}

TEST(BackpropagationTest, GradientIsAutogradsForFullAndShortBatches) {
  for (const std::vector<int64_t>& hidden :
       {std::vector<int64_t>{64, 64, 64}, {5}, {}, {8, 3, 9, 4, 6}}) {
    const Mlp mlp = initial_mlp({.inputs = 7, .hidden = hidden, .outputs = 3}, 1);
    Backpropagation pass(mlp, 32, 0);
    for (const int64_t rows : {32, 5, 1, 32}) {
      const Array x = normal_array(rows, 7, 2), direction = normal_array(rows, 3, 3);
      const torch::Tensor expected = autograd_gradient(mlp, tensor_of(x), tensor_of(direction));
      const double size = expected.abs().max().item<double>();
      EXPECT_LT(largest_difference(our_gradient(pass, x, direction), expected), 1e-5 * size);
    }
  }
}

TEST(BackpropagationTest, ForwardWithoutDropoutIsTheNetwork) {
  const Mlp mlp = initial_mlp({.inputs = 7, .outputs = 3}, 1);
  Backpropagation pass(mlp, 16, 0.5);
  const Array x = normal_array(16, 7, 2);
  std::ranges::copy(x.values, pass.inputs(16).begin());
  const torch::Tensor ours = tensor_of(pass.forward(nullptr), {16, 3});
  EXPECT_LT(largest_difference(ours, mlp.forward(tensor_of(x))), 1e-6);
}

// A network whose output is the sum of 101 hidden units that are all 1: with dropout the output is
// (number kept) / (1 − p), so its mean tells the share kept. Over 2,000 rows of 101 coins with p =
// 0.25 the share's standard deviation is 0.00096; six of them are a chance of 2e-9. The gradient by
// each output weight is the number of rows that kept its unit / (1 − p): the same coins.
TEST(BackpropagationTest, DropoutKeepsItsShareAndGradientsSeeTheSameCoins) {
  constexpr int64_t kRows = 2000, kUnits = 101;  // odd: the last coin stands alone
  Mlp mlp({.inputs = 1, .hidden = {kUnits}, .outputs = 1});
  mlp.layers()[0].bias.fill_(1);
  mlp.layers()[1].weight.fill_(1);
  Backpropagation pass(mlp, kRows, 0.25);
  std::ranges::fill(pass.inputs(kRows), 0.0f);
  Random random(7);
  const std::span<const float> outputs = pass.forward(&random);
  double sum = 0;
  for (const float output : outputs) sum += output;
  EXPECT_NEAR(sum * 0.75 / (kRows * kUnits), 0.75, 6 * 0.00096);

  std::ranges::fill(pass.output_gradient(), 1.0f);
  const std::span<const float> gradient = pass.backward();
  const std::span<const float> first_bias = gradient.subspan(kUnits, kUnits);
  const std::span<const float> second_weight = gradient.subspan(2 * kUnits, kUnits);
  double total = 0;
  for (size_t i = 0; i < kUnits; ++i) {
    EXPECT_NEAR(first_bias[i], second_weight[i], 1e-4 * kRows);  // summed in another order
    total += second_weight[i];
  }
  EXPECT_NEAR(total, sum, 1e-4 * sum);  // float32 sums of 2,000 numbers
}

// Dropout follows hidden layers 1 and 3 but not 2: all 50 units of layer 2 arrive.
TEST(BackpropagationTest, SecondHiddenLayerHasNoDropout) {
  Mlp mlp({.inputs = 1, .hidden = {4, 50, 4}, .outputs = 1});
  mlp.layers()[1].bias.fill_(1);    // hidden layer 2 is 1 whatever layer 1 gives
  mlp.layers()[2].weight.fill_(1);  // hidden layer 3 is the number kept of layer 2
  mlp.layers()[3].weight.fill_(1);
  Backpropagation pass(mlp, 64, 0.5);
  std::ranges::fill(pass.inputs(64), 0.0f);
  Random random(7);
  for (const float output : pass.forward(&random)) {
    EXPECT_EQ(std::fmod(output, 100.0f), 0) << "not a multiple of 50 units / (1 - p)";
  }
}

}  // namespace
}  // namespace fcp
