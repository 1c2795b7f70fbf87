#include "fcp/training/loss.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/functional/loss.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"

#include "tests/training/training_examples.h"

namespace fcp {
namespace {

// By hand: levels 0.1 and 0.9, one target. Row 0: y = 1, predictions 3 and 0; row 1: y = 2,
// predictions 2 and 5. Losses 0.9·2 + 0.9·1 and 0 + 0.1·3, over two rows.
TEST(LossTest, PinballLiterals) {
  const LossFunction function{Loss::kQuantile, {0.1, 0.9}, {}};
  const std::vector<float> predictions{3, 0, 2, 5}, targets{1, 2};
  std::vector<float> gradient(4);
  const LossSum loss = evaluate_loss(function, 2, predictions, targets, gradient);
  EXPECT_NEAR(loss.mean(), (1.8 + 0.9 + 0.0 + 0.3) / 2, 1e-7);
  EXPECT_NEAR(gradient[0], 0.9 / 2, 1e-7);
  EXPECT_NEAR(gradient[1], -0.9 / 2, 1e-7);
  EXPECT_NEAR(gradient[2], -0.1 / 2, 1e-7);  // y = p counts as y ≥ p
  EXPECT_NEAR(gradient[3], 0.1 / 2, 1e-7);
}

// Columns are level by level: low of both targets, then high of both.
TEST(LossTest, PinballOfSeveralTargetsIsLevelByLevelAndWeighted) {
  const LossFunction function{Loss::kQuantile, {0.25, 0.75}, {1, 10}};
  const std::vector<float> predictions{1, 2, 3, 4}, targets{2, 8};
  std::vector<float> gradient(4);
  const LossSum loss = evaluate_loss(function, 1, predictions, targets, gradient);
  EXPECT_NEAR(loss.mean(), (0.25 * 1 + 10 * 0.25 * 6 + 0.25 * 1 + 10 * 0.75 * 4) / 2, 1e-6);
  EXPECT_NEAR(gradient[0], -0.25 / 2, 1e-7);
  EXPECT_NEAR(gradient[1], -2.5 / 2, 1e-7);
  EXPECT_NEAR(gradient[2], 0.25 / 2, 1e-7);
  EXPECT_NEAR(gradient[3], -7.5 / 2, 1e-7);
}

TEST(LossTest, SquaredErrorIsTorchs) {
  const Array p = normal_array(7, 3, 1), y = normal_array(7, 3, 2);
  std::vector<float> gradient(21);
  const LossSum plain = evaluate_loss({Loss::kMse, {}, {}}, 7, p.values, y.values, gradient);
  torch::Tensor prediction = tensor_of(p).requires_grad_(true);
  torch::Tensor expected = torch::mse_loss(prediction, tensor_of(y));
  expected.backward();
  EXPECT_NEAR(plain.mean(), expected.item<double>(), 1e-6);
  EXPECT_LT(largest_difference(tensor_of(gradient, {7, 3}), prediction.grad()), 1e-7);

  const LossSum weighted =
      evaluate_loss({Loss::kMse, {}, {1, 2, 5}}, 7, p.values, y.values, gradient);
  prediction = tensor_of(p).requires_grad_(true);
  expected = (torch::tensor({1.0f, 2.0f, 5.0f}) * (prediction - tensor_of(y)).square()).mean();
  expected.backward();
  EXPECT_NEAR(weighted.mean(), expected.item<double>(), 1e-6);
  EXPECT_LT(largest_difference(tensor_of(gradient, {7, 3}), prediction.grad()), 1e-6);
}

TEST(LossTest, CrossEntropyIsTorchsWithAndWithoutWeights) {
  Array p = normal_array(6, 4, 3);
  p.values[5] = 200;  // exp of it overflows a float
  const std::vector<float> labels{0, 3, 1, 1, 2, 0};
  const torch::Tensor indices = torch::tensor(labels).to(torch::kLong);
  for (const std::vector<double>& weights : {std::vector<double>{}, {0.5, 1, 2, 7}}) {
    std::vector<float> gradient(24);
    const LossSum loss =
        evaluate_loss({Loss::kCrossEntropy, {}, weights}, 6, p.values, labels, gradient);
    torch::nn::functional::CrossEntropyFuncOptions options;
    if (!weights.empty()) options.weight(torch::tensor(weights, torch::kFloat));
    torch::Tensor prediction = tensor_of(p).requires_grad_(true);
    const torch::Tensor expected =
        torch::nn::functional::cross_entropy(prediction, indices, options);
    expected.backward();
    EXPECT_NEAR(loss.mean(), expected.item<double>(), 1e-5 * expected.item<double>());
    EXPECT_LT(largest_difference(tensor_of(gradient, {6, 4}), prediction.grad()), 1e-6);
  }
}

TEST(LossTest, NamesGoBothWays) {
  for (const Loss loss : {Loss::kMse, Loss::kQuantile, Loss::kCrossEntropy}) {
    EXPECT_EQ(parse_loss(loss_name(loss)), loss);
  }
  EXPECT_THROW(parse_loss("huber"), Error);
}

}  // namespace
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
