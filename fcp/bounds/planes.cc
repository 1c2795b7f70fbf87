#include "fcp/bounds/planes.h"

#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/nn/kernels/cpu/line_rows.h"
#include "fcp/nn/kernels/cpu/row_product.h"
#include "fcp/nn/runtime/device_waits.h"

namespace fcp {
namespace {

torch::Tensor row_sums(const torch::Tensor& coefficients, const torch::Tensor& values,
                       int64_t rows) {
  const torch::Tensor a = coefficients.reshape({coefficients.size(0), rows, -1});
  return row_dots(a, values.expand(coefficients.sizes().slice(1)).reshape({rows, -1}));
}

// κ for a lower bound of Σ a·p, [S, N, …] with 1 along the axis.
torch::Tensor sum_shift(const torch::Tensor& a, const Planes& planes) {
  const int64_t axis = planes.unit_sum + 1;
  const auto [sorted, order] = a.sort(axis);
  const torch::Tensor lower = planes.middle.lower.expand(a.sizes()).gather(axis, order);
  const torch::Tensor upper = planes.middle.upper.expand(a.sizes()).gather(axis, order);
  const torch::Tensor filled =
      (upper - lower).cumsum(axis) + lower.sum(axis, /*keepdim=*/true);  // k taken as upper
  const torch::Tensor place = (filled < 1).sum(axis, /*keepdim=*/true).clamp_max(a.size(axis) - 1);
  return sorted.gather(axis, place);
}

torch::Tensor zero_like(const torch::Tensor& values) { return torch::zeros({}, values.options()); }

torch::Tensor sums_of(const torch::Tensor& shift, int64_t rows) {
  return sum_rows(shift.reshape({shift.size(0) * rows, -1})).reshape({shift.size(0), rows});
}

}  // namespace

Coefficients& Coefficients::operator+=(const Coefficients& other) {
  if (!defined()) return *this = other;
  const bool same = lower.is_same(upper) && other.lower.is_same(other.upper);
  lower = lower + other.lower;
  upper = same ? lower : upper + other.upper;
  return *this;
}

torch::Tensor careful_row_sums(const torch::Tensor& given, const torch::Tensor& values,
                               int64_t rows, bool magnitude) {
  if (given.size(1) % rows != 0) {
    fail("linear bounds need an operator to keep rows apart, found ", given.size(1),
         " rows made of ", rows);
  }
  if (takes_loops(given)) return weighted_sums(given, values, rows, magnitude);
  const torch::Tensor coefficients = magnitude ? given.abs() : given;
  if (may_read_back(values) && values.isfinite().all().item<bool>()) {
    return row_sums(coefficients, values, rows);
  }
  // What is not used is 0, instead of the product, so that the gradient of coefficients that happen
  // to be 0 stays.
  const torch::Tensor used = coefficients.ne(0).logical_or(values.isfinite());
  const torch::Tensor product = coefficients * torch::where(used, values, zero_like(values));
  return sum_rows(product.reshape({product.size(0) * rows, -1})).reshape({product.size(0), rows});
}

Planes constant_planes(const Range& output) {
  Planes planes;
  planes.middle = output;
  return planes;
}

Planes tangent_planes(const Op& op, const std::vector<Range>& inputs, const Tensors& middles,
                      const Range& output, double unit) {
  Planes planes;
  torch::Tensor at_middle;
  Remainder rest;
  {
    const torch::NoGradGuard no_gradients;
    at_middle = op.forward(middles)[0];
    rest = op.remainder(inputs, middles, unit);
  }
  const torch::Tensor lower = at_middle + rest.exact.lower.to(at_middle.scalar_type());
  const torch::Tensor upper = at_middle + rest.exact.upper.to(at_middle.scalar_type());
  // No number is neither above nor below anything: constants.
  const torch::Tensor finite = lower.isfinite().logical_and(upper.isfinite());
  const torch::Tensor tight_lower = finite.logical_and((lower > output.lower));
  const torch::Tensor tight_upper = finite.logical_and((upper < output.upper));
  planes.middle = {torch::where(tight_lower, lower, output.lower),
                   torch::where(tight_upper, upper, output.upper)};
  if (!may_read_back(lower) || tight_lower.logical_or(tight_upper).any().item<bool>()) {
    planes.along_lower = tight_lower.to(lower.scalar_type());
    planes.along_upper = tight_upper.to(lower.scalar_type());
  }
  if (unit > 0 && rest.rounding.defined()) planes.rounding = rest.rounding.to(lower.scalar_type());
  planes.unit_sum = op.unit_sum(output.lower.dim());
  return planes;
}

Coefficients between_planes(const Planes& planes, Coefficients output, int64_t rows,
                            Biases& biases) {
  const auto sums = [&](const torch::Tensor& a, const torch::Tensor& values) {
    return careful_row_sums(a, values, rows);
  };
  if (planes.rounding.defined()) {
    biases.lower = biases.lower - careful_row_sums(output.lower, planes.rounding, rows, true);
    biases.upper = biases.upper + careful_row_sums(output.upper, planes.rounding, rows, true);
  }
  if (planes.unit_sum >= 0) {
    const torch::Tensor lower = sum_shift(output.lower, planes);
    const torch::Tensor upper = -sum_shift(-output.upper, planes);
    biases.lower = biases.lower + sums_of(lower, rows);
    biases.upper = biases.upper + sums_of(upper, rows);
    output = {output.lower - lower, output.upper - upper};
  }
  const torch::Tensor lower_plus = output.lower.clamp_min(0);
  const torch::Tensor lower_minus = output.lower.clamp_max(0);
  const torch::Tensor upper_plus = output.upper.clamp_min(0);
  const torch::Tensor upper_minus = output.upper.clamp_max(0);
  const auto& [lower, upper] = planes.middle;
  biases.lower = biases.lower + sums(lower_plus, lower) + sums(lower_minus, upper);
  biases.upper = biases.upper + sums(upper_plus, upper) + sums(upper_minus, lower);
  if (!planes.along_lower.defined()) return {};
  return {lower_plus * planes.along_lower + lower_minus * planes.along_upper,
          upper_plus * planes.along_upper + upper_minus * planes.along_lower};
}

}  // namespace fcp
