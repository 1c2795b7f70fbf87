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

// Means over rows [n, …], by their weights [n, 1] or plain.
struct RowMean {
  torch::Tensor weight;

  torch::Tensor of(const torch::Tensor& values, bool keep = false) const {
    if (!weight.defined()) return values.mean(0, keep);
    return (values * weight).sum(0, keep) / weight.sum();
  }
};

void label_error(HoldoutError& error, const torch::Tensor& logits, const torch::Tensor& y,
                 const RowMean& mean) {
  const torch::Tensor labels = y.select(1, 0).to(torch::kLong);
  const auto right = logits.argmax(1).eq(labels).to(torch::kDouble).unsqueeze(1);
  error.accuracy = mean.of(right).item<double>();
  const torch::Tensor weight = mean.weight.defined() ? mean.weight.flatten() : torch::Tensor();
  const torch::Tensor counts = torch::bincount(labels, weight).to(torch::kDouble);
  error.majority = (counts.max() / counts.sum()).item<double>();
}

void quantile_error(HoldoutError& error, const torch::Tensor& both, const torch::Tensor& y,
                    const RowMean& mean) {
  const torch::Tensor low = both.narrow(1, 0, y.size(1));
  const torch::Tensor high = both.narrow(1, y.size(1), y.size(1));
  const torch::Tensor inside = y.ge(low).logical_and(y.le(high));
  error.coverage = mean.of(inside.to(torch::kDouble)).mean().item<double>();
  error.length = mean.of(high - low).mean().item<double>();
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

HoldoutError holdout_error(Loss loss, const torch::Tensor& predictions, const torch::Tensor& y,
                           const torch::Tensor& weight) {
  HoldoutError error;
  error.rows = y.size(0);
  const torch::Tensor found = predictions.to(torch::kDouble), truth = y.to(torch::kDouble);
  const RowMean mean{weight.defined() ? weight.to(torch::kDouble).view({-1, 1}) : torch::Tensor()};
  if (loss == Loss::kCrossEntropy) {
    label_error(error, found, truth, mean);
  } else if (loss == Loss::kQuantile) {
    quantile_error(error, found, truth, mean);
  } else {
    const torch::Tensor off = truth - mean.of(truth, /*keep=*/true);
    error.rmse = column_numbers(mean.of((found - truth).square()).sqrt());
    error.mae = column_numbers(mean.of((found - truth).abs()));
    error.deviation = column_numbers(mean.of(off.square()).sqrt());
  }
  return error;
}

std::vector<std::string> training_warnings(const HoldoutError& error,
                                           std::span<const FitCurve> curves, int64_t epochs,
                                           const std::vector<std::string>& names) {
  std::vector<std::string> warnings;
  for (size_t k = 0; k < error.rmse.size(); ++k) {
    if (error.rmse[k] < 0.995 * error.deviation[k]) continue;
    const std::string name =
        k < names.size() ? concat("'", names[k], "'") : concat("target ", k, " (from 0)");
    warnings.push_back(concat(name, " is predicted no better than by its mean: hold-out RMSE ",
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

double residual_length(const torch::Tensor& errors, const torch::Tensor& weight) {
  const auto [sizes, order] = errors.abs().flatten().sort();
  int64_t place = 0;
  if (weight.defined()) {
    const torch::Tensor below = weight.index_select(0, order).to(torch::kDouble).cumsum(0);
    place = (below < 0.9 * below[-1]).sum().item<int64_t>();
  } else {
    const auto rank = static_cast<int64_t>(std::ceil(0.9 * static_cast<double>(sizes.numel() + 1)));
    place = rank - 1;
  }
  return 2 * sizes[std::min(place, sizes.numel() - 1)].item<double>();
}

}  // namespace fcp
