// What training makes small, with its gradient. Shapes: N rows, K targets, and predictions of
// [N, outputs] where outputs depends on the kind:
//
//   mse            outputs = K             w_k (p − y)²
//   quantile       outputs = K · levels    w_k max(τ (y − p), (τ − 1) (y − p))     pinball
//   cross_entropy  outputs = classes       w_y (log Σ exp(p) − p_y),  y the label, K = 1
//
// The columns of quantile predictions are level by level: all K targets of the first level, then
// all of the second. Over rows the loss is a mean: of w_k·(…) over rows and targets for mse, summed
// over levels for quantile, and Σ w_y (…) / Σ w_y for cross_entropy, as PyTorch has it.
// Tested by tests/training/loss_test.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fcp {

enum class Loss { kMse, kQuantile, kCrossEntropy };

// "mse", "quantile", "cross-entropy", as the command line spells them.
std::string loss_name(Loss loss);
Loss parse_loss(const std::string& name);

struct LossFunction {
  Loss kind = Loss::kMse;
  std::vector<double> levels{};   // of the quantiles
  std::vector<double> weights{};  // one per target, or one per class; empty: all 1
};

// A loss over some rows, kept as a sum so that several blocks of rows can be added up.
struct LossSum {
  double sum = 0;
  double weight = 0;
  double mean() const { return sum / weight; }
};

// The loss of `rows` rows. Where `gradient` is not empty it becomes that of the mean with respect
// to the predictions.
LossSum evaluate_loss(const LossFunction& function, int64_t rows,
                      std::span<const float> predictions, std::span<const float> targets,
                      std::span<float> gradient = {});

}  // namespace fcp
