#include "fcp/bounds/bound_rules.h"

#include <limits>

#include "fcp/base/error.h"
#include "fcp/bounds/relax.h"

namespace fcp {

Tensors lower_ends(const std::vector<Range>& ranges) {
  Tensors ends;
  for (const Range& range : ranges) ends.push_back(range.lower);
  return ends;
}

Tensors upper_ends(const std::vector<Range>& ranges) {
  Tensors ends;
  for (const Range& range : ranges) ends.push_back(range.upper);
  return ends;
}

// The interval over [−m, m] with m = max |x| has |W||x| + |b| as its largest magnitude.
Tensors affine_errors(const Op& op, const std::vector<Range>& inputs, double unit) {
  const double k = op.roundings(lower_ends(inputs));
  if (unit == 0 || k == 0) return {};
  std::vector<Range> symmetric = inputs;
  for (Range& input : symmetric) {
    if (is_constant(input)) continue;
    const torch::Tensor most = torch::maximum(input.lower.abs(), input.upper.abs());
    input = {-most, most};
  }
  const double ku = (k + 1) * unit;
  if (ku >= 1) fail("a sum of ", k, " terms is too long for bounds that hold its rounding");
  Tensors sizes = {op.magnitude(upper_ends(symmetric))};
  if (!sizes[0].defined()) {
    sizes.clear();
    for (const Range& output : op.interval(symmetric, 0)) {
      sizes.push_back(torch::maximum(output.lower.abs(), output.upper.abs()));
    }
  }
  for (torch::Tensor& size : sizes) {
    size = size * (ku / (1 - ku)) + k * std::numeric_limits<float>::min();
  }
  return sizes;
}

std::vector<Range> interval_of(const Op& op, BoundRule rule, const std::vector<Range>& inputs,
                               double unit, const Range* known) {
  if (rule == BoundRule::kCurve) {
    return {curve_interval(op.curve(lower_ends(inputs)), inputs[0], unit)};
  }
  std::vector<Range> outputs =
      known != nullptr ? std::vector<Range>{*known} : op.interval(inputs, unit);
  if (rule != BoundRule::kAffine) return outputs;
  const Tensors errors = affine_errors(op, inputs, unit);
  for (size_t i = 0; i < errors.size(); ++i) {
    // −∞, of a mask, stays −∞, though its error is infinite too.
    const auto& [lower, upper] = outputs[i];
    outputs[i] = {torch::where(lower.isinf(), lower, lower - errors[i]),
                  torch::where(upper.isinf(), upper, upper + errors[i])};
  }
  return outputs;
}

}  // namespace fcp
