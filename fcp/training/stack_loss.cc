#include "fcp/training/stack_loss.h"

#include <torch/types.h>
#include <torch/utils.h>

namespace fcp {
namespace {

// [S, N, 2, K]: outputs minus targets, for both outputs of a target.
torch::Tensor paired_errors(const torch::Tensor& outputs, const torch::Tensor& y) {
  const int64_t targets = y.size(2);
  return outputs.view({outputs.size(0), outputs.size(1), 2, targets}) - y.unsqueeze(2);
}

torch::Tensor label_indices(const torch::Tensor& y) { return y.select(2, 0).to(torch::kLong); }

// [S, 1, 1], for networks' shares of the loss.
torch::Tensor share_of(const torch::Tensor& shares, int64_t which) {
  return shares.select(1, which).view({-1, 1, 1});
}

// The slope of the pinball loss of level τ in e = output − y: 1 − τ above the target, −τ below it.
torch::Tensor pinball_slope(const torch::Tensor& error, double level) {
  return error.gt(0).to(torch::kFloat) - level;
}

}  // namespace

torch::Tensor StackLoss::row_losses(const torch::Tensor& outputs, const torch::Tensor& y) const {
  if (kind == Loss::kCrossEntropy) {
    const torch::Tensor labels = label_indices(y);
    const torch::Tensor chosen =
        torch::log_softmax(outputs, 2).gather(2, labels.unsqueeze(2)).squeeze(2);
    return -chosen * weights.index_select(0, labels.flatten()).view_as(chosen);
  }
  const torch::Tensor errors = paired_errors(outputs, y);
  const torch::Tensor first = errors.select(2, 0), second = errors.select(2, 1);
  if (kind == Loss::kQuantile) {
    const torch::Tensor both =
        first * pinball_slope(first, low) + second * pinball_slope(second, high);
    return (both * weights).mean(2);
  }
  const torch::Tensor both =
      first.square() * share_of(shares, 0) + second.abs() * share_of(shares, 1);
  return (both * weights).mean(2);
}

torch::Tensor StackLoss::gradient(const torch::Tensor& outputs, const torch::Tensor& y) const {
  const double rows = static_cast<double>(outputs.size(1));
  if (kind == Loss::kCrossEntropy) {
    const torch::Tensor labels = label_indices(y);
    torch::Tensor slope = torch::softmax(outputs, 2);
    slope.scatter_add_(2, labels.unsqueeze(2),
                       torch::full({labels.size(0), labels.size(1), 1}, -1.0f, slope.options()));
    const torch::Tensor row = weights.index_select(0, labels.flatten()).view_as(labels);
    return slope * (row / rows).unsqueeze(2);
  }
  const torch::Tensor errors = paired_errors(outputs, y);
  const torch::Tensor first = errors.select(2, 0), second = errors.select(2, 1);
  const torch::Tensor scale = weights / (rows * static_cast<double>(y.size(2)));
  if (kind == Loss::kQuantile) {
    return torch::cat({pinball_slope(first, low) * scale, pinball_slope(second, high) * scale}, 2);
  }
  return torch::cat(
      {first * (2 * share_of(shares, 0)) * scale, second.sign() * share_of(shares, 1) * scale}, 2);
}

}  // namespace fcp
