#include <cmath>
#include <limits>

#include "fcp/base/error.h"
#include "fcp/network/ops/normalization.h"

namespace fcp {
namespace {

// c / √((c² + others) / n + ε): rises with c, and its size falls with `others`.
torch::Tensor normalized(const torch::Tensor& c, const torch::Tensor& others, double n,
                         double epsilon) {
  const torch::Tensor z = c / ((c.square() + others) / n + epsilon).sqrt();
  return z.masked_fill((c == 0).logical_or(z.isnan()), 0);
}

// Σ_{j≠i} x_j along the last axis, from sums of what comes before and after: no subtraction, so
// that larger terms never give a smaller sum, to the last bit.
torch::Tensor sum_of_others(const torch::Tensor& x) {
  const int64_t n = x.size(-1);
  if (n == 1) return torch::zeros_like(x);
  const torch::Tensor zero = torch::zeros_like(x.narrow(-1, 0, 1));
  const torch::Tensor before = torch::cat({zero, x.narrow(-1, 0, n - 1).cumsum(-1)}, -1);
  const torch::Tensor after = torch::cat({zero, x.flip({-1}).narrow(-1, 0, n - 1).cumsum(-1)}, -1);
  return before + after.flip({-1});
}

Range centered_box(const torch::Tensor& low, const torch::Tensor& high, bool centers, double unit) {
  const auto n = static_cast<double>(low.size(-1));
  Range c = {low, high};
  if (centers) {  // c_i = (1 − 1/n) x_i − Σ_{j≠i} x_j / n
    c = {low * (1 - 1 / n) - sum_of_others(high) / n, high * (1 - 1 / n) - sum_of_others(low) / n};
  }
  if (unit == 0) return c;
  const torch::Tensor size = torch::maximum(low.abs(), high.abs());
  const torch::Tensor error =
      (size + size.mean(-1, true)) * ((n + 8) * unit) + std::numeric_limits<float>::min();
  return {c.lower - error, c.upper + error};
}

}  // namespace

double read_epsilon(OpArguments& arguments) {
  const double epsilon = arguments.number("epsilon", 1e-5);
  if (!(epsilon >= 0)) {
    fail(describe(arguments.node()), ": epsilon is ", epsilon, ", expected a number >= 0");
  }
  return epsilon;
}

Range centered_interval(const Range& given, int64_t axes, double epsilon, bool centers,
                        double unit) {
  const torch::Tensor low = given.lower.to(torch::kDouble).flatten(-axes);
  const torch::Tensor high = given.upper.to(torch::kDouble).flatten(-axes);
  const auto n = static_cast<double>(low.size(-1));
  const Range c = centered_box(low, high, centers, unit);
  const torch::Tensor most = torch::maximum(c.lower.square(), c.upper.square());
  const torch::Tensor least = torch::minimum(c.lower.square(), c.upper.square())
                                  .masked_fill((c.lower <= 0).logical_and(c.upper >= 0), 0);
  const torch::Tensor others_most = sum_of_others(most), others_least = sum_of_others(least);
  const double limit = std::sqrt(centers ? n - 1 : n), slack = (n + 16) * unit;
  const auto finish = [&](const torch::Tensor& end, double sign) {
    // Exact arithmetic stays within the limit; rounded differences, divided by √ε, need not.
    const torch::Tensor z = unit > 0 ? end : end.clamp(-limit, limit);
    const torch::Tensor wide = z + (z.abs() + 1e-3) * (slack * sign);
    return wide.reshape(given.lower.sizes()).to(given.lower.scalar_type());
  };
  return {finish(torch::minimum(normalized(c.lower, others_least, n, epsilon),
                                normalized(c.lower, others_most, n, epsilon)),
                 -1),
          finish(torch::maximum(normalized(c.upper, others_least, n, epsilon),
                                normalized(c.upper, others_most, n, epsilon)),
                 1)};
}

Range scaled_interval(const Range& z, const torch::Tensor& scale, const torch::Tensor& bias,
                      double unit) {
  const torch::Tensor plus = scale.clamp_min(0), minus = scale.clamp_max(0);
  torch::Tensor lower = z.lower * plus + z.upper * minus;
  torch::Tensor upper = z.upper * plus + z.lower * minus;
  torch::Tensor size = torch::maximum(lower.abs(), upper.abs());
  if (bias.defined()) {
    lower = lower + bias;
    upper = upper + bias;
    size = size + bias.abs();
  }
  if (unit == 0) return {lower, upper};
  const torch::Tensor error = size * (8 * unit) + std::numeric_limits<float>::min();
  return {lower - error, upper + error};
}

}  // namespace fcp
