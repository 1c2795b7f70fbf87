#include "fcp/training/rising_quantiles.h"

namespace fcp {

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

}  // namespace fcp
