#include "fcp/training/loss.h"

#include <algorithm>
#include <cmath>

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

}  // namespace fcp
