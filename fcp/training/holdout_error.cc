#include "fcp/training/holdout_error.h"

#include <algorithm>
#include <cmath>

#include <torch/types.h>

#include "fcp/base/error.h"

namespace fcp {
namespace {

std::vector<double> column_numbers(const torch::Tensor& values) {
  std::vector<double> numbers;
  for (int64_t k = 0; k < values.size(0); ++k) numbers.push_back(values[k].item<double>());
  return numbers;
}

void label_error(HoldoutError& error, const torch::Tensor& logits, const torch::Tensor& y) {
  const torch::Tensor labels = y.select(1, 0).to(torch::kLong);
  error.accuracy = logits.argmax(1).eq(labels).to(torch::kDouble).mean().item<double>();
  const torch::Tensor counts = torch::bincount(labels);
  error.majority = counts.max().item<double>() / static_cast<double>(labels.size(0));
}

void quantile_error(HoldoutError& error, const torch::Tensor& both, const torch::Tensor& y) {
  const torch::Tensor low = both.narrow(1, 0, y.size(1));
  const torch::Tensor high = both.narrow(1, y.size(1), y.size(1));
  const torch::Tensor inside = y.ge(low).logical_and(y.le(high));
  error.coverage = inside.to(torch::kDouble).mean().item<double>();
  error.length = (high - low).mean().item<double>();
}

// Whether the loss fell by more than 1 % over the last tenth of the epochs, which only a network
// that saw the last one can have.
bool still_improving(const FitCurve& curve, int64_t epochs) {
  const size_t all = static_cast<size_t>(epochs);
  if (curve.holdout_loss.size() < all || all < 2) return false;
  const size_t back = std::max<size_t>(1, all / 10);
  return curve.holdout_loss[all - 1] < 0.99 * curve.holdout_loss[all - 1 - back];
}

}  // namespace

HoldoutError holdout_error(Loss loss, const torch::Tensor& predictions, const torch::Tensor& y) {
  HoldoutError error;
  error.rows = y.size(0);
  const torch::Tensor found = predictions.to(torch::kDouble), truth = y.to(torch::kDouble);
  if (loss == Loss::kCrossEntropy) {
    label_error(error, found, truth);
  } else if (loss == Loss::kQuantile) {
    quantile_error(error, found, truth);
  } else {
    error.rmse = column_numbers((found - truth).square().mean(0).sqrt());
    error.mae = column_numbers((found - truth).abs().mean(0));
    error.deviation = column_numbers((truth - truth.mean(0, true)).square().mean(0).sqrt());
  }
  return error;
}

std::vector<std::string> training_warnings(const HoldoutError& error,
                                           std::span<const FitCurve> curves, int64_t epochs) {
  std::vector<std::string> warnings;
  for (size_t k = 0; k < error.rmse.size(); ++k) {
    if (error.rmse[k] < 0.995 * error.deviation[k]) continue;
    warnings.push_back(concat(
        "target ", k, " (from 0) is predicted no better than by its mean: ", "hold-out RMSE ",
        error.rmse[k], ", that of the mean ", error.deviation[k]));
  }
  if (error.majority > 0 && error.accuracy <= error.majority) {
    warnings.push_back(concat(
        "labels are predicted no better than by the most frequent one: ", "hold-out accuracy ",
        error.accuracy, ", its share ", error.majority));
  }
  const auto improving = std::count_if(curves.begin(), curves.end(), [&](const FitCurve& curve) {
    return still_improving(curve, epochs);
  });
  if (2 * improving > static_cast<int64_t>(curves.size())) {
    warnings.push_back(concat("the hold-out loss was still falling after ", epochs,
                              " epochs: more epochs may give a better network"));
  }
  return warnings;
}

double residual_length(const torch::Tensor& errors) {
  const torch::Tensor sizes = errors.abs().flatten();
  const auto rank = static_cast<int64_t>(std::ceil(0.9 * static_cast<double>(sizes.numel() + 1)));
  const int64_t place = std::min(rank, sizes.numel());
  return 2 * std::get<0>(sizes.kthvalue(place)).item<double>();
}

}  // namespace fcp
