#include <cmath>
#include <limits>

#include "fcp/base/error.h"
#include "fcp/base/special_numbers.h"
#include "fcp/nn/ops/normalization.h"
#include "fcp/nn/ops/shared.h"

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

// What rounding may do to each c.
torch::Tensor centering_error(const torch::Tensor& low, const torch::Tensor& high, double unit) {
  const auto n = static_cast<double>(low.size(-1));
  const torch::Tensor size = torch::maximum(low.abs(), high.abs());
  return (size + size.mean(-1, true)) * ((n + 8) * unit) + std::numeric_limits<float>::min();
}

Range centered_box(const torch::Tensor& low, const torch::Tensor& high, bool centers, double unit) {
  const auto n = static_cast<double>(low.size(-1));
  Range c = {low, high};
  if (centers) {  // c_i = (1 − 1/n) x_i − Σ_{j≠i} x_j / n
    c = {low * (1 - 1 / n) - sum_of_others(high) / n, high * (1 - 1 / n) - sum_of_others(low) / n};
  }
  if (unit == 0) return c;
  const torch::Tensor error = centering_error(low, high, unit);
  return {c.lower - error, c.upper + error};
}

// How far the numbers c of a box may be from those of its middle, and what follows for s and ρ.
struct Neighbourhood {
  torch::Tensor c, reach, error;  // c₀, |d| and its part by rounding, [..., n]
  torch::Tensor s, t, q, least;   // s₀, |t|, the largest q and the least s, [..., 1]
  torch::Tensor root, slope;      // ρ₀ and |ρ'₀|
};

Neighbourhood neighbourhood(const torch::Tensor& low, const torch::Tensor& high,
                            const torch::Tensor& m, double epsilon, bool centers, double unit) {
  const auto n = static_cast<double>(low.size(-1));
  const torch::Tensor r = torch::maximum(high - m, m - low);
  Neighbourhood near;
  near.c = centers ? m - m.mean(-1, true) : m;
  near.error = unit > 0 ? centering_error(low, high, unit) : torch::zeros_like(m);
  const torch::Tensor moved = centers ? r * (1 - 2 / n) + r.mean(-1, true) : r;
  near.reach = moved + near.error;
  // Taking the mean out lengthens no vector.
  const torch::Tensor length =
      r.square().sum(-1, true).sqrt() + near.error.square().sum(-1, true).sqrt();
  const torch::Tensor square = near.c.square().mean(-1, true);
  near.s = square + epsilon;
  near.t = (near.c.abs() * (r + near.error)).mean(-1, true) * 2;
  near.q = length.square() / n;
  const torch::Tensor by_length = (square.sqrt() - length / std::sqrt(n)).clamp_min(0).square();
  const torch::Tensor by_numbers = (near.c.abs() - near.reach).clamp_min(0).square().mean(-1, true);
  near.least = torch::maximum(by_length, by_numbers) + epsilon;
  near.root = near.s.rsqrt();
  near.slope = near.root / near.s / 2;
  return near;
}

}  // namespace

CenteredRemainder centered_remainder(const Range& given, const torch::Tensor& middle, int64_t axes,
                                     double epsilon, bool centers, double unit) {
  const torch::Tensor low = given.lower.to(torch::kDouble).flatten(-axes);
  const torch::Tensor high = given.upper.to(torch::kDouble).flatten(-axes);
  const torch::Tensor m = middle.to(torch::kDouble).flatten(-axes);
  const Neighbourhood near = neighbourhood(low, high, m, epsilon, centers, unit);
  const auto bent = [&](const torch::Tensor& t) {
    return (torch::maximum(near.s + t, near.least).rsqrt() - near.root + near.slope * t)
        .clamp_min(0);
  };
  const torch::Tensor above =
      torch::maximum(bent(torch::maximum(-near.t, near.least - near.s)), bent(near.t));
  const torch::Tensor below = -near.slope * near.q;
  const torch::Tensor change = torch::maximum(near.least.rsqrt() - near.root,
                                              near.root - (near.s + near.t + near.q).rsqrt());
  const torch::Tensor product = near.reach * change;
  const torch::Tensor plus = near.c.clamp_min(0), minus = near.c.clamp_max(0);
  const torch::Tensor lower = plus * below + minus * above - product;
  const torch::Tensor upper = plus * above + minus * below + product;
  const torch::Tensor z = near.c.abs() * near.root;
  const torch::Tensor size = z + near.reach * near.root + near.c.abs() * near.slope * near.t +
                             torch::maximum(lower.abs(), upper.abs());
  const torch::Tensor of_errors = (near.c.abs() * near.error).mean(-1, true) * 2;
  // The walk's own products f'(m)m round as well.
  const torch::Tensor walked =
      (m.abs() + m.abs().mean(-1, true)) * near.root + z * near.root * (z * m.abs()).mean(-1, true);
  const double slack = (static_cast<double>(m.size(-1)) + 16) * unit;
  const torch::Tensor rounding = near.error * near.root + near.c.abs() * near.slope * of_errors +
                                 (size + walked + 1e-3) * slack + std::numeric_limits<float>::min();
  const auto shaped = [&](const torch::Tensor& x) { return x.reshape(given.lower.sizes()); };
  return {{shaped(lower), shaped(upper)}, shaped(rounding), shaped(size)};
}

Remainder scaled_remainder(const CenteredRemainder& z, const torch::Tensor& scale,
                           const torch::Tensor& bias, double unit) {
  const torch::Tensor plus = scale.clamp_min(0), minus = scale.clamp_max(0);
  torch::Tensor size = z.size * scale.abs();
  if (bias.defined()) size = size + bias.abs();
  return {
      {z.exact.lower * plus + z.exact.upper * minus, z.exact.upper * plus + z.exact.lower * minus},
      z.rounding * scale.abs() + size * (16 * unit) + std::numeric_limits<float>::min()};
}

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
  const torch::Tensor lost = (low.isfinite() & high.isfinite()).logical_not().any(-1, true);
  const auto finish = [&](const torch::Tensor& given_end, double sign) {
    const torch::Tensor end = given_end.masked_fill(lost, sign * kInfinity);
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

torch::Tensor per_channel(const torch::Tensor& numbers, const torch::Tensor& x) {
  std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
  shape[1] = -1;
  return numbers.reshape(shape);
}

namespace {

Tensors lower_inputs(const std::vector<Range>& inputs) {
  Tensors lower;
  for (const Range& input : inputs) lower.push_back(input.lower);
  return lower;
}

torch::Tensor in_groups(const torch::Tensor& x, int64_t groups) {
  return groups > 0 ? x.reshape({x.size(0), groups, -1}) : x;
}

}  // namespace

BoundRule NormalizingOp::bound_rule(const std::vector<bool>& constant) const {
  return affine_in_first(constant) == BoundRule::kAffine ? BoundRule::kSmooth : BoundRule::kNone;
}

std::vector<Range> NormalizingOp::interval(const std::vector<Range>& inputs, double unit) const {
  const Normalized of = normalized(lower_inputs(inputs));
  const auto& [lower, upper] = inputs[0];
  const Range z = centered_interval({in_groups(lower, of.groups), in_groups(upper, of.groups)},
                                    of.axes, of.epsilon, of.centers, unit);
  return {scaled_interval({z.lower.reshape(lower.sizes()), z.upper.reshape(lower.sizes())},
                          of.scale, of.bias, unit)};
}

Remainder NormalizingOp::remainder(const std::vector<Range>& inputs, const Tensors& middles,
                                   double unit) const {
  const Normalized of = normalized(lower_inputs(inputs));
  const auto& [lower, upper] = inputs[0];
  CenteredRemainder z =
      centered_remainder({in_groups(lower, of.groups), in_groups(upper, of.groups)},
                         in_groups(middles[0], of.groups), of.axes, of.epsilon, of.centers, unit);
  for (torch::Tensor* part : {&z.exact.lower, &z.exact.upper, &z.rounding, &z.size}) {
    if (part->defined()) *part = part->reshape(lower.sizes());
  }
  return scaled_remainder(z, of.scale, of.bias, unit);
}

}  // namespace fcp
