#include "fcp/bounds/crown.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/network/libtorch_error.h"
#include "fcp/network/row_product.h"

namespace fcp {
namespace {

bool is_nonlinear(BoundRule rule) {
  return rule == BoundRule::kCurve || rule == BoundRule::kLargest || rule == BoundRule::kSmallest;
}

// Where the network may overflow nothing linear is known of an affine op's output.
void mark_overflow(const Step& step, const Ranges& ranges, LinearStep& linear) {
  if (linear.errors.empty()) return;
  for (size_t k = 0; k < step.outputs.size() && k < linear.errors.size(); ++k) {
    if (step.outputs[k] < 0) continue;
    const Range& range = ranges[static_cast<size_t>(step.outputs[k])];
    const torch::Tensor over = range.lower.isinf().logical_or(range.upper.isinf());
    linear.errors[k] = linear.errors[k].masked_fill(over, std::numeric_limits<double>::infinity());
  }
}

// Slots that a nonlinear op reads.
std::vector<bool> slots_to_refine(const PreparedHead& head) {
  std::vector<bool> marked(head.constants.size(), false);
  const std::vector<Step>& steps = head.network->steps();
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!is_nonlinear(head.plans[i].rule)) continue;
    for (const int slot : steps[i].inputs) {
      if (slot >= 0) marked[static_cast<size_t>(slot)] = true;
    }
  }
  return marked;
}

// The identity of numbers [first, first + count) of a tensor like `like` [N, …]: [count, N, …].
Coefficients identity(const torch::Tensor& like, int64_t first, int64_t count) {
  const int64_t rows = like.size(0), numbers = like.numel() / rows;
  const torch::Tensor one =
      torch::zeros({count, numbers}, like.options())
          .scatter_(1, torch::arange(first, first + count, like.device()).unsqueeze(1), 1);
  std::vector<int64_t> shape = like.sizes().vec();
  shape[0] = 1;
  shape.insert(shape.begin(), count);
  const torch::Tensor tensor = one.view(shape);
  shape[1] = rows;
  const torch::Tensor all = tensor.expand(shape);
  return {all, all};
}

// A·v + b ∓ r‖A·scale‖*, as [N, S]. With outward rounding, sums in double precision are allowed
// a relative error of 2⁻⁴⁶ and a bit for their length.
Range concretize(const LinearHead& linear, const Coefficients& coefficients, const Biases& biases) {
  const Ball& ball = linear.ball;
  if (!coefficients.defined()) return {biases.lower.t(), biases.upper.t()};
  const auto side = [&](const torch::Tensor& a, const torch::Tensor& bias, double sign) {
    const int64_t count = a.size(0), rows = a.size(1);
    const torch::Tensor flat = a.reshape({count, rows, -1});
    const torch::Tensor center = ball.center.reshape({rows, -1});
    const torch::Tensor scaled = ball.scale.defined() ? flat * row_scale(ball).reshape({-1}) : flat;
    const torch::Tensor reach =
        dual_norm(scaled.reshape({count * rows, -1}), ball.norm).view({count, rows}) * ball.radius;
    const torch::Tensor value = row_dots(flat, center) + bias;
    torch::Tensor result = value + reach * sign;
    if (linear.head->unit > 0) {
      const double slack = std::ldexp(64.0 + static_cast<double>(flat.size(2)), -52);
      const torch::Tensor size = row_dots(flat.abs(), center.abs());
      result = result + (size + bias.abs() + reach) * (sign * slack);
    }
    return result.t();
  };
  return {side(coefficients.lower, biases.lower, -1), side(coefficients.upper, biases.upper, 1)};
}

}  // namespace

Range bound_numbers(const LinearHead& linear, int slot, int64_t first, int64_t count,
                    const SlopesByStep& slopes) {
  const std::vector<Step>& steps = linear.head->network->steps();
  std::vector<Coefficients> coefficients(linear.ranges.size());
  const auto at = [&](int s) -> Coefficients& { return coefficients[static_cast<size_t>(s)]; };
  const torch::Tensor& like = linear.ranges[static_cast<size_t>(slot)].lower;
  at(slot) = identity(like, first, count);
  const torch::Tensor zero = torch::zeros({count, linear.ball.center.size(0)}, like.options());
  Biases biases = {zero, zero};
  for (size_t i = linear.steps.size(); i-- > 0;) {
    const Step& step = steps[i];
    std::vector<Coefficients> outputs;
    bool matters = false;
    for (const int output : step.outputs) {
      outputs.push_back(output < 0 ? Coefficients() : std::exchange(at(output), {}));
      matters = matters || outputs.back().defined();
    }
    if (!matters || linear.head->plans[i].runs) continue;
    const bool free = i < slopes.size() && slopes[i].for_lower.defined();
    std::vector<Coefficients> inputs;
    try {
      inputs = step_back(*step.op, linear.steps[i], outputs, biases, free ? &slopes[i] : nullptr);
    } catch (const c10::Error& error) {
      fail_libtorch(describe(step.node), error);
    }
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (step.inputs[k] >= 0 && inputs[k].defined()) at(step.inputs[k]) += inputs[k];
    }
  }
  return concretize(linear, at(linear.head->network->input_slots()[0]), biases);
}

Range bound_slot(const LinearHead& linear, int slot) {
  const torch::Tensor& like = linear.ranges[static_cast<size_t>(slot)].lower;
  const int64_t numbers = like.numel() / like.size(0), chunk = linear.numbers_at_once;
  Tensors lower, upper;
  for (int64_t first = 0; first < numbers; first += chunk) {
    const Range part = bound_numbers(linear, slot, first, std::min(chunk, numbers - first));
    lower.push_back(part.lower);
    upper.push_back(part.upper);
  }
  return {torch::cat(lower, 1).view(like.sizes()), torch::cat(upper, 1).view(like.sizes())};
}

LinearHead make_linear_head(const PreparedHead& head, const Ball& ball, const FirstOutputs& first,
                            bool refine, int64_t numbers_at_once) {
  LinearHead linear;
  linear.head = &head;
  linear.ball = ball;
  linear.numbers_at_once = std::max<int64_t>(1, numbers_at_once);
  const std::vector<Step>& steps = head.network->steps();
  const std::vector<bool> wanted =
      refine ? slots_to_refine(head) : std::vector<bool>(head.constants.size(), false);
  walk_forwards(head, ball, first, /*keep=*/true, [&](size_t i, Ranges& ranges) {
    linear.steps.resize(i);
    linear.steps.push_back(make_linear_step(*steps[i].op, head.plans[i].rule,
                                            step_inputs(steps[i], ranges), head.unit));
    mark_overflow(steps[i], ranges, linear.steps.back());
    linear.ranges = ranges;  // tensors are shared, not copied
    if (first[i].center.defined()) return;
    for (const int slot : steps[i].outputs) {
      if (slot < 0 || !wanted[static_cast<size_t>(slot)]) continue;
      const Range tight = bound_slot(linear, slot);
      Range& range = ranges[static_cast<size_t>(slot)];
      range = {torch::fmax(range.lower, tight.lower), torch::fmin(range.upper, tight.upper)};
    }
    linear.ranges = ranges;
  });
  linear.steps.resize(steps.size());
  return linear;
}

}  // namespace fcp
