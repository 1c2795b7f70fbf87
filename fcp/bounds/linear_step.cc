#include "fcp/bounds/linear_step.h"

#include <limits>
#include <utility>

#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/bounds/vector_jacobian.h"
#include "fcp/nn/runtime/device_waits.h"

namespace fcp {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

Tensors middles_of(const std::vector<Range>& inputs) {
  Tensors middles;
  for (const Range& input : inputs) {
    const bool one = is_constant(input);
    middles.push_back(one ? input.lower : input.lower / 2 + input.upper / 2);
  }
  return middles;
}

void prepare_bilinear(const Op& op, const std::vector<Range>& inputs, double unit,
                      LinearStep& step) {
  Tensors half, most;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto& [lower, upper] = inputs[i];
    step.inputs[i] = (lower + upper) / 2;
    half.push_back((upper - lower) / 2);
    most.push_back(torch::maximum(lower.abs(), upper.abs()));
  }
  step.constants = {-op.forward(step.inputs)[0]};
  // Beside r_x r_y, γ |x||y| for the network's rounding, and the same for that of the middles.
  const double ku = (op.roundings(step.inputs) + 3) * unit;
  if (ku >= 1) fail("a sum of ", ku / unit, " terms is too long for bounds that hold its rounding");
  step.errors = {op.forward(half)[0] + op.forward(most)[0] * (ku / (1 - ku))};
}

void prepare_largest(const Op& op, const std::vector<Range>& inputs, LinearStep& step) {
  torch::Tensor lower = op.candidates(lower_ends(inputs));
  torch::Tensor upper = op.candidates(upper_ends(inputs));
  if (step.rule == BoundRule::kSmallest) {
    std::swap(lower, upper);
    lower = -lower;
    upper = -upper;
  }
  const torch::Tensor place = lower.argmax(-1, /*keepdim=*/true);
  step.winner = torch::zeros_like(lower).scatter(-1, place, 1);
  const torch::Tensor others = upper.masked_fill(step.winner > 0, kMinusInfinity).amax(-1);
  const torch::Tensor sure = others <= lower.amax(-1);
  step.sure_winner = step.winner * sure.unsqueeze(-1);
  step.largest = upper.amax(-1).masked_fill(sure, 0);
  const torch::Tensor constant = op.candidates(step.inputs);  // what padding and constants bring
  step.constants = {constant.masked_fill(constant.isinf(), 0)};
}

}  // namespace

LinearStep make_linear_step(const Op& op, BoundRule rule, const std::vector<Range>& inputs,
                            const std::vector<Range>& outputs, double unit, bool fans) {
  LinearStep step;
  step.rule = rule;
  for (const Range& input : inputs) {
    const bool varies = !is_constant(input);
    step.varies.push_back(varies);
    if (varies) step.rows = input.lower.size(0);
    step.inputs.push_back(varies ? zeros_like_shape(input.lower, input.lower.sizes().vec())
                                 : input.lower);
  }
  if (rule == BoundRule::kCurve) {
    step.lines = relax(op.curve(lower_ends(inputs)), inputs[0], unit, fans);
  } else if (rule == BoundRule::kAffine) {
    step.constants = op.forward(step.inputs);
    for (torch::Tensor& constant : step.constants) {
      const bool none = may_read_back(constant) && !constant.any().item<bool>();
      if (!constant.is_floating_point() || none) constant = torch::Tensor();
    }
    step.errors = affine_errors(op, inputs, unit);
  } else if (rule == BoundRule::kBilinear) {
    prepare_bilinear(op, inputs, unit, step);
  } else if (rule == BoundRule::kInterval) {
    for (const Range& output : outputs) {
      if (output.lower.defined() && output.lower.size(0) % step.rows != 0) {
        fail("linear bounds need an operator to keep rows apart, found ", output.lower.size(0),
             " rows made of ", step.rows);
      }
      step.planes.push_back(constant_planes(output));
    }
  } else if (rule == BoundRule::kSmooth) {
    step.inputs = middles_of(inputs);
    step.planes = {tangent_planes(op, inputs, step.inputs, outputs[0], unit)};
  } else {
    prepare_largest(op, inputs, step);
  }
  return step;
}

}  // namespace fcp
