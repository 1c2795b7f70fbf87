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

#include <torch/types.h>

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

// What a stack of networks makes small, with its gradient. Shapes: S networks, N rows of each, K
// targets, outputs [S, N, O]:
//
//   mse            O = 2K, K means and then K medians:   u w_k (p − y)² + v w_k |q − y|
//   quantile       O = 2K, K low and then K high:        w_k pinball of each
//   cross_entropy  O = classes:                          w_y (log Σ exp(p) − p_y)
//
// u and v are each network's own: a mean is learned better beside a median (the absolute error
// keeps outliers from owning the features), and a network for medians has u = 0. The loss is the
// mean over rows and targets. Tested by tests/training/loss_test.cc.

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

// Quantiles that rise by construction, and the loss they are fitted with.
//
// The output of a network for one row and target is Q numbers a_0 … a_{Q−1}, Q odd, m = (Q − 1)/2:
//
//   q_m = a_m,   q_{j+1} = q_j + softplus(a_{j+1}) + δ above,   q_{j−1} = q_j − softplus(a_{j−1}) −
//   δ
//
// that is q = s C with s_m = a_m, s_j = softplus(a_j) + δ elsewhere and a constant matrix C.
// Tested by tests/training/heads_test.cc.

// C, [Q, Q].
torch::Tensor rising_matrix(int64_t quantiles);

// output [E, N, K · Q] → [E, N, K, Q]; `floor` [1] is δ.
torch::Tensor rising_quantiles(const torch::Tensor& output, int64_t outputs,
                               const torch::Tensor& floor);

// The outputs [K · Q] whose quantiles are the grid [K, Q], or where its steps are below δ, nearly.
torch::Tensor rising_start(const torch::Tensor& grid, const torch::Tensor& floor);

// The empirical quantiles of each column of values [n, K] at 1/(Q+1), …, Q/(Q+1): [K, Q] doubles.
torch::Tensor marginal_quantiles(const torch::Tensor& values, int64_t quantiles);

// Σ over levels τ of max(τ (y − q), (τ − 1)(y − q)), the mean over levels and outputs of each row:
// quantiles [E, N, K, Q], y [E, N, K] → [E, N].
torch::Tensor pinball_loss(const torch::Tensor& quantiles, const torch::Tensor& y);

// Lower triangular factors of a covariance per row, positive by construction, and the loss they are
// fitted with.
//
// The output of a network for one row is K · K numbers a, row by row, of which the upper triangle
// is not read:
//
//   L_kk = exp(a_kk), a_kk kept within 3 of its start;   L_kj = a_kj for j < k
//   loss = Σ_k a_kk + (ν + K)/2 · log(1 + ‖L⁻¹ u‖² / ν),  ν = 5
//
// the negative log-likelihood of a multivariate t distribution, up to a constant: errors have
// heavier tails than a Gaussian, whose likelihood would follow the few largest. Only the shape of L
// counts, because calibration finds the radius. Tested by tests/training/heads_test.cc.

inline constexpr double kFactorRange = 3;  // of the diagonal's logarithm around its start

// The output [K · K] whose factor is that of the mean of u uᵀ over the rows u [n, K].
torch::Tensor factor_start(const torch::Tensor& u);

// output […, K · K] → […, K, K]; `start` is that of the output.
torch::Tensor cholesky_factors(const torch::Tensor& output, const torch::Tensor& start);

// Of each row: output [E, N, K · K], u [E, N, K] → [E, N].
torch::Tensor factor_loss(const torch::Tensor& output, const torch::Tensor& start,
                          const torch::Tensor& u);

}  // namespace fcp
