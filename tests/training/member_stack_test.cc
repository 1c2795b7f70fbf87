#include "fcp/training/member_stack.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "tests/training/training_examples.h"

namespace fcp {
namespace {

constexpr uint64_t kStackSeeds[] = {1, 2, 3};

torch::Tensor stack_rows(int64_t networks, int64_t rows, int64_t columns, uint64_t seed) {
  return tensor_of(normal_array(networks * rows, columns, seed)).view({networks, rows, columns});
}

// Each network on its own, layer by layer.
torch::Tensor forward_slowly(const torch::Tensor& parameters, const StackShape& shape,
                             const torch::Tensor& x) {
  const StackViews views = stack_views(parameters, shape);
  std::vector<torch::Tensor> outputs;
  for (int64_t s = 0; s < parameters.size(0); ++s) {
    torch::Tensor value = x[s] * views.scale[s];
    for (size_t i = 0; i < views.layers.size(); ++i) {
      if (i > 0) value = torch::relu(value);
      value = torch::matmul(value, views.layers[i].weight[s]) + views.layers[i].bias[s];
    }
    outputs.push_back(value);
  }
  return torch::stack(outputs);
}

TEST(MemberStackTest, ForwardIsThatOfEachNetworkAlone) {
  const StackShape shape{5, {7, 6}, 2};
  torch::Tensor parameters = initial_stack(shape, kStackSeeds);
  parameters.narrow(1, 0, 5).mul_(1.5);
  const torch::Tensor x = stack_rows(3, 11, 5, 1);
  const MemberStack stack(shape, parameters.clone());
  EXPECT_LT(largest_difference(stack.forward(x), forward_slowly(parameters, shape, x)), 1e-5);
}

TEST(MemberStackTest, BackwardIsThatOfAutograd) {
  const StackShape shape{5, {7, 6}, 2};
  torch::Tensor parameters = initial_stack(shape, kStackSeeds);
  parameters.narrow(1, 0, 5).mul_(1.5);
  const torch::Tensor x = stack_rows(3, 11, 5, 1);
  const torch::Tensor slope = stack_rows(3, 11, 2, 2);
  MemberStack stack(shape, parameters.clone());
  DropoutMasks masks(0, 1, 1, torch::kCPU);
  stack.forward(x, masks);
  stack.backward(slope);
  torch::Tensor leaf = parameters.clone().requires_grad_();
  const torch::Tensor total = (forward_slowly(leaf, shape, x) * slope).sum();
  const torch::Tensor expected = torch::autograd::grad({total}, {leaf})[0];
  EXPECT_LT(largest_difference(stack.gradient(), expected), 1e-4);
}

// With dropout the output is linear in the masks' windows: a step along the gradient must change
// it as the gradient says, under the same masks.
TEST(MemberStackTest, BackwardKnowsWhatDropoutDropped) {
  const StackShape shape{4, {9}, 1};
  const torch::Tensor parameters = initial_stack(shape, kStackSeeds);
  const torch::Tensor x = stack_rows(3, 50, 4, 1);
  const auto run = [&](const torch::Tensor& at, torch::Tensor* gradient) {
    MemberStack stack(shape, at.clone());
    DropoutMasks masks(0.5, 3 * 50 * 9, 7, torch::kCPU);  // the same masks each time
    const torch::Tensor output = stack.forward(x, masks);
    if (gradient != nullptr) {
      stack.backward(torch::ones_like(output));
      *gradient = stack.gradient().clone();
    }
    return output.sum().item<double>();
  };
  torch::Tensor gradient;
  const double before = run(parameters, &gradient);
  const double step = 1e-4;
  const double after = run(parameters + step * gradient, nullptr);
  const double expected = step * gradient.square().sum().item<double>();
  EXPECT_NEAR(after - before, expected, 0.05 * expected);
}

// Buffers of small products come from memory in which NaNs stood before.
TEST(MemberStackTest, BackwardReadsNoMemoryThatNobodyWrote) {
  const StackShape shape{4, {8}, 1};
  const int64_t networks = 3, rows = 10;
  MemberStack stack(shape, initial_stack(shape, kStackSeeds));
  const torch::Tensor x = stack_rows(networks, rows, 4, 1);
  for (int round = 0; round < 50; ++round) {
    DropoutMasks masks(0.1, networks * rows * 8, 7, torch::kCPU);
    const torch::Tensor output = stack.forward(x, masks);
    {
      std::vector<torch::Tensor> dirt;
      for (int i = 0; i < 20; ++i) {
        dirt.push_back(torch::full({networks, rows, 8}, std::nan(""), torch::kFloat));
      }
    }
    stack.backward(torch::ones_like(output));
    ASSERT_TRUE(stack.gradient().isfinite().all().item<bool>()) << "round " << round;
  }
}

TEST(MemberStackTest, MasksKeepTheMean) {
  DropoutMasks masks(0.25, 100000, 3, torch::kCPU);
  const torch::Tensor mask = masks.next({10, 100, 100});
  // 100,000 draws: the share has a deviation of 0.0014, five of which are 0.007.
  EXPECT_NEAR(mask.eq(0).to(torch::kFloat).mean().item<double>(), 0.25, 0.007);
  EXPECT_NEAR(mask.max().item<double>(), 1 / 0.75, 1e-6);
}

TEST(MemberStackTest, GoesOnWithTheNetworksThatAreKept) {
  const StackShape shape{5, {7}, 2};
  const torch::Tensor parameters = initial_stack(shape, kStackSeeds);
  const torch::Tensor x = stack_rows(3, 11, 5, 1);
  MemberStack stack(shape, parameters.clone());
  const torch::Tensor all = stack.forward(x);
  const torch::Tensor places = torch::tensor(std::vector<int64_t>{0, 2}, torch::kLong);
  stack.keep(places);
  EXPECT_EQ(stack.networks(), 2);
  EXPECT_LT(
      largest_difference(stack.forward(x.index_select(0, places)), all.index_select(0, places)),
      1e-6);
}

// Adam as the paper writes it, in double precision.
TEST(StackAdamTest, IsAdamWithARateOfItsOwnForScales) {
  torch::Tensor parameters = tensor_of(normal_array(3, 40, 1));
  torch::Tensor expected = parameters.to(torch::kDouble);
  torch::Tensor mean = torch::zeros_like(expected), square = torch::zeros_like(expected);
  StackAdam adam(parameters, /*scales=*/4, /*scale_factor=*/10);
  for (int step = 1; step <= 20; ++step) {
    const torch::Tensor gradient = tensor_of(normal_array(3, 40, static_cast<uint64_t>(step)));
    adam.step(parameters, gradient, 0.01);
    const torch::Tensor g = gradient.to(torch::kDouble);
    mean = 0.9 * mean + 0.1 * g;
    square = 0.999 * square + 0.001 * g * g;
    const torch::Tensor change = 0.01 * (mean / (1 - std::pow(0.9, step))) /
                                 ((square / (1 - std::pow(0.999, step))).sqrt() + 1e-8);
    expected.narrow(1, 0, 4).sub_(10 * change.narrow(1, 0, 4));
    expected.narrow(1, 4, 36).sub_(change.narrow(1, 4, 36));
  }
  EXPECT_LT(largest_difference(parameters, expected.to(torch::kFloat)), 1e-4);
}

}  // namespace
}  // namespace fcp
