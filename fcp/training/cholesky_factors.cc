#include "fcp/training/cholesky_factors.h"

#include <cmath>
#include <vector>

namespace fcp {
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
