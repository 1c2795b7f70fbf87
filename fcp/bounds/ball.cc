#include "fcp/bounds/ball.h"

#include "fcp/base/error.h"
#include "fcp/nn/kernels/cpu/row_product.h"

namespace fcp {

std::string norm_name(Norm norm) {
  return norm == Norm::kInf ? "inf" : norm == Norm::kTwo ? "2" : "1";
}

Norm parse_norm(const std::string& name) {
  for (const Norm norm : {Norm::kInf, Norm::kTwo, Norm::kOne}) {
    if (name == norm_name(norm)) return norm;
  }
  fail("norm '", name, "' is not known, expected inf, 2 or 1");
}

torch::Tensor dual_norm(const torch::Tensor& rows, Norm norm) {
  const torch::Tensor flat = rows.flatten(1).abs();
  if (norm == Norm::kInf) return sum_rows(flat);
  if (norm == Norm::kOne) return flat.amax(1);
  // Scaled by the largest, so that no square overflows or vanishes.
  const torch::Tensor largest = flat.amax(1, /*keepdim=*/true);
  const torch::Tensor scale = largest.masked_fill(largest == 0, 1);
  return sum_rows((flat / scale).square()).sqrt() * largest.squeeze(1);
}

torch::Tensor row_scale(const Ball& ball) {
  if (!ball.scale.defined())
    return torch::ones({1}, ball.center.options()).expand_as(ball.center.narrow(0, 0, 1));
  return ball.scale.to(ball.center.options()).expand_as(ball.center.narrow(0, 0, 1));
}

torch::Tensor rowwise(const torch::Tensor& per_row, const torch::Tensor& like) {
  std::vector<int64_t> shape(static_cast<size_t>(like.dim()), 1);
  shape[0] = per_row.size(0);
  return per_row.view(shape);
}

}  // namespace fcp
