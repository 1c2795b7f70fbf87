// Quantiles that rise by construction, and the loss they are fitted with.
//
// The output of a network for one row and target is Q numbers a_0 … a_{Q−1}, Q odd, m = (Q − 1)/2:
//
//   q_m = a_m,   q_{j+1} = q_j + softplus(a_{j+1}) + δ above,   q_{j−1} = q_j − softplus(a_{j−1}) −
//   δ
//
// that is q = s C with s_m = a_m, s_j = softplus(a_j) + δ elsewhere and a constant matrix C.
// Tested by tests/training/heads_test.cc.
#pragma once

#include <cstdint>

#include <torch/types.h>

namespace fcp {

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

}  // namespace fcp
