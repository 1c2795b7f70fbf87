#include "fcp/training/stack_loss.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "tests/training/training_examples.h"

namespace fcp {
namespace {

StackLoss loss_of(Loss kind, int64_t columns) {
  StackLoss loss;
  loss.kind = kind;
  loss.low = 0.2;
  loss.high = 0.7;
  loss.weights = torch::arange(1, columns + 1).to(torch::kFloat);
  loss.shares = torch::tensor({1.0f, 0.5f, 0.0f, 2.0f}).view({2, 2});
  return loss;
}

// The gradient is that of the losses, whatever they are.
void expect_gradient(const StackLoss& loss, const torch::Tensor& outputs, const torch::Tensor& y) {
  torch::Tensor leaf = outputs.clone().requires_grad_();
  const torch::Tensor total = loss.row_losses(leaf, y).mean(1).sum();
  const torch::Tensor expected = torch::autograd::grad({total}, {leaf})[0];
  EXPECT_LT(largest_difference(loss.gradient(outputs, y), expected), 1e-6);
}

torch::Tensor block_of(int64_t columns, uint64_t seed) {
  return tensor_of(normal_array(2 * 9, columns, seed)).view({2, 9, columns});
}

TEST(StackLossTest, GradientsAreThoseOfTheLosses) {
  expect_gradient(loss_of(Loss::kMse, 3), block_of(6, 1), block_of(3, 2));
  expect_gradient(loss_of(Loss::kQuantile, 3), block_of(6, 1), block_of(3, 2));
  const torch::Tensor labels = block_of(1, 3).abs().clamp_max(1.9).floor();
  expect_gradient(loss_of(Loss::kCrossEntropy, 4), block_of(4, 1), labels);
}

TEST(StackLossTest, LossesAreWhatTheHeaderSays) {
  const torch::Tensor y = torch::zeros({2, 1, 1});
  const torch::Tensor outputs = torch::tensor({3.0f, -2.0f, 3.0f, -2.0f}).view({2, 1, 2});
  const torch::Tensor mse = loss_of(Loss::kMse, 1).row_losses(outputs, y);
  EXPECT_FLOAT_EQ(mse[0][0].item<float>(), 1 * 9 + 0.5f * 2);
  EXPECT_FLOAT_EQ(mse[1][0].item<float>(), 2 * 2);
  // 3 above the truth at level 0.2, 2 below it at level 0.7.
  const torch::Tensor pinball = loss_of(Loss::kQuantile, 1).row_losses(outputs, y);
  EXPECT_FLOAT_EQ(pinball[0][0].item<float>(), 3 * 0.8f + 2 * 0.7f);
}

}  // namespace
}  // namespace fcp
