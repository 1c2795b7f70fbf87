#include "fcp/training/loss.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"

namespace fcp {
namespace {

double loss_weight(const LossFunction& function, size_t index) {
  return function.weights.empty() ? 1.0 : function.weights[index];
}

LossSum squared_error(const LossFunction& function, size_t rows, std::span<const float> p,
                      std::span<const float> y, std::span<float> gradient) {
  const size_t targets = p.size() / rows;
  const double count = static_cast<double>(p.size());
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    const double weight = loss_weight(function, i % targets);
    const double error = static_cast<double>(p[i]) - y[i];
    sum += weight * error * error;
    if (!gradient.empty()) gradient[i] = static_cast<float>(2 * weight * error / count);
  }
  return {sum, count};
}

LossSum pinball(const LossFunction& function, size_t rows, std::span<const float> p,
                std::span<const float> y, std::span<float> gradient) {
  const size_t outputs = p.size() / rows;
  const size_t targets = outputs / function.levels.size();
  const double count = static_cast<double>(y.size());
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    const size_t column = i % outputs, target = column % targets;
    const double level = function.levels[column / targets];
    const double weight = loss_weight(function, target);
    const double error = static_cast<double>(y[i / outputs * targets + target]) - p[i];
    const double slope = error >= 0 ? level : level - 1;  // of the loss in y − p
    sum += weight * slope * error;
    if (!gradient.empty()) gradient[i] = static_cast<float>(-weight * slope / count);
  }
  return {sum, count};
}

LossSum cross_entropy(const LossFunction& function, size_t rows, std::span<const float> p,
                      std::span<const float> y, std::span<float> gradient) {
  const size_t classes = p.size() / rows;
  LossSum total;
  for (const float label : y) total.weight += loss_weight(function, static_cast<size_t>(label));
  for (size_t i = 0; i < rows; ++i) {
    const std::span<const float> logits = p.subspan(i * classes, classes);
    const size_t label = static_cast<size_t>(y[i]);
    const double weight = loss_weight(function, label);
    const double largest = *std::max_element(logits.begin(), logits.end());
    double normaliser = 0;
    for (const float logit : logits) normaliser += std::exp(logit - largest);
    total.sum += weight * (std::log(normaliser) + largest - logits[label]);
    if (gradient.empty()) continue;
    for (size_t c = 0; c < classes; ++c) {
      const double probability = std::exp(logits[c] - largest) / normaliser;
      const double slope = probability - (c == label ? 1 : 0);
      gradient[i * classes + c] = static_cast<float>(weight * slope / total.weight);
    }
  }
  return total;
}

}  // namespace

std::string loss_name(Loss loss) {
  if (loss == Loss::kMse) return "mse";
  return loss == Loss::kQuantile ? "quantile" : "cross-entropy";
}

Loss parse_loss(const std::string& name) {
  for (const Loss loss : {Loss::kMse, Loss::kQuantile, Loss::kCrossEntropy}) {
    if (name == loss_name(loss)) return loss;
  }
  fail("there is no loss '", name, "', expected mse, quantile or cross-entropy");
}

LossSum evaluate_loss(const LossFunction& function, int64_t rows,
                      std::span<const float> predictions, std::span<const float> targets,
                      std::span<float> gradient) {
  const size_t n = static_cast<size_t>(rows);
  if (function.kind == Loss::kMse) {
    return squared_error(function, n, predictions, targets, gradient);
  }
  if (function.kind == Loss::kQuantile) {
    return pinball(function, n, predictions, targets, gradient);
  }
  return cross_entropy(function, n, predictions, targets, gradient);
}

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

torch::Tensor rising_matrix(int64_t quantiles) {
  const int64_t middle = quantiles / 2, above = quantiles - middle - 1;
  torch::Tensor matrix = torch::zeros({quantiles, quantiles});
  matrix.narrow(0, 0, middle).narrow(1, 0, middle).copy_(-torch::ones({middle, middle}).tril());
  matrix.select(0, middle).fill_(1);
  matrix.narrow(0, middle + 1, above)
      .narrow(1, middle + 1, above)
      .copy_(torch::ones({above, above}).triu());
  return matrix;
}

torch::Tensor rising_quantiles(const torch::Tensor& output, int64_t outputs,
                               const torch::Tensor& floor) {
  const int64_t quantiles = output.size(2) / outputs, middle = quantiles / 2;
  const torch::Tensor raw = output.reshape({output.size(0), output.size(1), outputs, quantiles});
  const torch::Tensor steps = torch::softplus(raw) + floor;
  const torch::Tensor parts = torch::cat({steps.narrow(3, 0, middle), raw.narrow(3, middle, 1),
                                          steps.narrow(3, middle + 1, quantiles - middle - 1)},
                                         3);
  return torch::matmul(parts, rising_matrix(quantiles));
}

torch::Tensor rising_start(const torch::Tensor& grid, const torch::Tensor& floor) {
  const int64_t quantiles = grid.size(1), middle = quantiles / 2;
  const torch::Tensor steps = grid.narrow(1, 1, quantiles - 1) - grid.narrow(1, 0, quantiles - 1);
  const torch::Tensor wanted =
      torch::maximum(steps - floor.to(grid.dtype()), floor.to(grid.dtype()) * 0.1);
  // The inverse of softplus: log(eˣ − 1) = x + log(1 − e^−x).
  const torch::Tensor raw = wanted + torch::log(-torch::expm1(-wanted));
  return torch::cat({raw.narrow(1, 0, middle), grid.narrow(1, middle, 1),
                     raw.narrow(1, middle, quantiles - 1 - middle)},
                    1)
      .flatten()
      .to(torch::kFloat);
}

torch::Tensor marginal_quantiles(const torch::Tensor& values, int64_t quantiles) {
  const torch::Tensor sorted = std::get<0>(values.to(torch::kDouble).sort(0));  // [n, K]
  const int64_t last = sorted.size(0) - 1;
  const torch::Tensor place = torch::arange(1, quantiles + 1, torch::kDouble) /
                              static_cast<double>(quantiles + 1) * static_cast<double>(last);
  const torch::Tensor below = place.floor().to(torch::kLong);
  const torch::Tensor above = (below + 1).clamp_max(last);
  const torch::Tensor share = (place - below).unsqueeze(1);
  const torch::Tensor low = sorted.index_select(0, below);
  return (low + share * (sorted.index_select(0, above) - low)).t().contiguous();
}

torch::Tensor pinball_loss(const torch::Tensor& quantiles, const torch::Tensor& y) {
  const int64_t count = quantiles.size(3);
  const torch::Tensor levels =
      torch::arange(1, count + 1, torch::kFloat) / static_cast<double>(count + 1);
  const torch::Tensor above = y.unsqueeze(3) - quantiles;
  return torch::maximum(above * levels, above * (levels - 1)).mean({2, 3});
}

namespace {

constexpr double kDegrees = 5;   // ν
constexpr double kRidge = 1e-3;  // of its variance: added to each, so that a factor exists

int64_t outputs_of(const torch::Tensor& start) {
  return static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(start.numel()))));
}

// The logarithms of the diagonal, […, K], of outputs […, K, K].
torch::Tensor log_diagonal(const torch::Tensor& matrices, const torch::Tensor& start) {
  const int64_t outputs = outputs_of(start);
  const torch::Tensor middle = start.reshape({outputs, outputs}).diagonal();
  const torch::Tensor diagonal = matrices.diagonal(0, -2, -1);
  return torch::minimum(torch::maximum(diagonal, middle - kFactorRange), middle + kFactorRange);
}

torch::Tensor as_matrices(const torch::Tensor& output, int64_t outputs) {
  std::vector<int64_t> shape = output.sizes().vec();
  shape.back() = outputs;
  shape.push_back(outputs);
  return output.reshape(shape);
}

}  // namespace

torch::Tensor factor_start(const torch::Tensor& u) {
  const torch::Tensor rows = u.to(torch::kDouble);
  const int64_t outputs = rows.size(1);
  torch::Tensor second = rows.t().matmul(rows) / static_cast<double>(rows.size(0));
  const torch::Tensor variance = second.diagonal().clamp_min(1e-12);
  second = second + torch::diag(variance * kRidge);
  const torch::Tensor factor = torch::linalg_cholesky(second);
  return (factor.tril(-1) + torch::diag(factor.diagonal().log()))
      .reshape({outputs * outputs})
      .to(torch::kFloat);
}

torch::Tensor cholesky_factors(const torch::Tensor& output, const torch::Tensor& start) {
  const torch::Tensor matrices = as_matrices(output, outputs_of(start));
  return matrices.tril(-1) + torch::diag_embed(log_diagonal(matrices, start).exp());
}

torch::Tensor factor_loss(const torch::Tensor& output, const torch::Tensor& start,
                          const torch::Tensor& u) {
  const int64_t outputs = outputs_of(start);
  const torch::Tensor matrices = as_matrices(output, outputs);  // [E, N, K, K]
  const torch::Tensor logs = log_diagonal(matrices, start);     // [E, N, K]
  const torch::Tensor reciprocal = logs.neg().exp();
  // z = L⁻¹ u, number by number.
  std::vector<torch::Tensor> z;
  for (int64_t k = 0; k < outputs; ++k) {
    torch::Tensor left = u.select(2, k);
    if (k > 0) {
      left = left - (matrices.select(2, k).narrow(2, 0, k) * torch::stack(z, 2)).sum(2);
    }
    z.push_back(left * reciprocal.select(2, k));
  }
  const torch::Tensor squares = torch::stack(z, 2).square().sum(2);
  const double power = (kDegrees + static_cast<double>(outputs)) / 2;
  return logs.sum(2) + power * torch::log1p(squares / kDegrees);
}

}  // namespace fcp
