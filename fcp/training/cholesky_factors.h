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
#pragma once

#include <cstdint>

#include <torch/types.h>

namespace fcp {

inline constexpr double kFactorRange = 3;  // of the diagonal's logarithm around its start

// The output [K · K] whose factor is that of the mean of u uᵀ over the rows u [n, K].
torch::Tensor factor_start(const torch::Tensor& u);

// output […, K · K] → […, K, K]; `start` is that of the output.
torch::Tensor cholesky_factors(const torch::Tensor& output, const torch::Tensor& start);

// Of each row: output [E, N, K · K], u [E, N, K] → [E, N].
torch::Tensor factor_loss(const torch::Tensor& output, const torch::Tensor& start,
                          const torch::Tensor& u);

}  // namespace fcp
