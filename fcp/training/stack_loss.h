// What a stack of networks makes small, with its gradient. Shapes: S networks, N rows of each, K
// targets, outputs [S, N, O]:
//
//   mse            O = 2K, K means and then K medians:   u w_k (p − y)² + v w_k |q − y|
//   quantile       O = 2K, K low and then K high:        w_k pinball of each
//   cross_entropy  O = classes:                          w_y (log Σ exp(p) − p_y)
//
// u and v are each network's own: a mean is learned better beside a median (the absolute error
// keeps outliers from owning the features), and a network for medians has u = 0. The loss is the
// mean over rows and targets. Tested by tests/training/stack_loss_test.cc.
#pragma once

#include <vector>

#include <torch/types.h>

#include "fcp/training/loss.h"

namespace fcp {

struct StackLoss {
  Loss kind = Loss::kMse;
  double low = 0.05;  // levels of the quantiles
  double high = 0.95;
  torch::Tensor weights;  // of targets or classes, [K]; all 1 where nothing was asked for
  torch::Tensor shares;   // mse: u and v of each network, [S, 2]

  // The loss of each row, [S, N]. Targets y [S, N, K]; labels as floats.
  torch::Tensor row_losses(const torch::Tensor& outputs, const torch::Tensor& y) const;

  // The gradient of the sum over networks of the mean over rows, [S, N, O].
  torch::Tensor gradient(const torch::Tensor& outputs, const torch::Tensor& y) const;
};

}  // namespace fcp
