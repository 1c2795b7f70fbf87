#include "fcp/bounds/crown.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/nn/kernels/cpu/line_rows.h"
#include "fcp/nn/kernels/cpu/row_product.h"
#include "fcp/nn/runtime/device_waits.h"
#include "fcp/nn/runtime/libtorch_error.h"

namespace fcp {
namespace {

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

// What nonlinear ops need of a slot: nothing, or its range; or, where all of them are hinges, its
// range as far as it holds 0.
enum class SlotNeed { kNothing, kSign, kRange };

bool is_hinge(const PreparedHead& head, const Step& step) {
  Tensors inputs;
  for (size_t k = 0; k < step.inputs.size(); ++k) {
    const int slot = step.inputs[k];
    inputs.push_back(slot < 0 ? torch::Tensor() : head.constants[static_cast<size_t>(slot)]);
    if (k > 0 && slot >= 0 && !inputs.back().defined()) return false;
  }
  return step.op->curve(inputs).hinge;
}

std::vector<SlotNeed> slot_needs(const PreparedHead& head) {
  std::vector<SlotNeed> needs(head.constants.size(), SlotNeed::kNothing);
  const std::vector<Step>& steps = head.network->steps();
  for (size_t i = 0; i < steps.size(); ++i) {
    const BoundRule rule = head.plans[i].rule;
    const bool nonlinear = rule == BoundRule::kCurve || rule == BoundRule::kLargest ||
                           rule == BoundRule::kSmallest || rule == BoundRule::kSmooth ||
                           rule == BoundRule::kBilinear;
    if (!nonlinear) continue;
    const SlotNeed need =
        rule == BoundRule::kCurve && is_hinge(head, steps[i]) ? SlotNeed::kSign : SlotNeed::kRange;
    for (const int slot : steps[i].inputs) {
      if (slot < 0) continue;
      SlotNeed& known = needs[static_cast<size_t>(slot)];
      known = std::max(known, need);
    }
  }
  return needs;
}

// Whether each number is still worth a walk.
torch::Tensor is_open(const Range& range, SlotNeed need) {
  if (need == SlotNeed::kRange) return range.lower < range.upper;
  return (range.lower < 0).logical_and(range.upper > 0);
}

// The places of a slot's numbers [N, …] as they are walked: of images place by place, so that those
// which go together see the same few places of a convolution's input.
torch::Tensor walking_order(const torch::Tensor& like) {
  const torch::Tensor all = torch::arange(like.numel() / like.size(0), like.device());
  return like.dim() < 3 ? all : all.view({like.size(1), -1}).t().reshape({-1});
}

// The numbers to walk for: all in that order, [D]; or of each row its open ones [N, D], of which
// there are at most `most`, and then others up to the longest row, [S, N]. Where nobody may ask how
// long that is, `most` of each.
torch::Tensor open_numbers(const torch::Tensor& open, const torch::Tensor& order, int64_t most) {
  const int64_t all = order.size(0);
  const int64_t count = may_read_back(open) ? open.sum(1).max().item<int64_t>() : most;
  if (count >= all) return order;
  const torch::Tensor closed = open.index_select(1, order).logical_not().to(torch::kLong);
  const torch::Tensor place = torch::arange(all, order.device());
  const torch::Tensor first = (closed * all + place).argsort(int64_t{1}).narrow(1, 0, count);
  return order.index_select(0, first.reshape({-1})).view({open.size(0), count}).t();
}

// The range of a slot, made smaller where it is open by what `way` finds, in rows with at most
// `most` such numbers. Which other rows are open does not change a row.
void refine_slot(const LinearHead& linear, int slot, SlotNeed need, const BoundWay& way,
                 int64_t most, Range& range) {
  torch::Tensor open = is_open(range, need).flatten(1);
  if (open.size(1) > most) open = open.logical_and(open.sum(1, /*keepdim=*/true) <= most);
  const torch::Tensor numbers = open_numbers(open, walking_order(range.lower), most);
  if (numbers.size(0) == 0) return;
  const Range found = bound_in_chunks(linear, slot, numbers, way);
  const torch::Tensor places =
      numbers.dim() == 1 ? numbers.expand({open.size(0), -1}) : numbers.t();
  const torch::Tensor wanted = open.gather(1, places);
  const auto tightened = [&](const torch::Tensor& end, const torch::Tensor& by, bool lower) {
    const torch::Tensor flat = end.flatten(1), old = flat.gather(1, places);
    const torch::Tensor tight = lower ? torch::fmax(old, by) : torch::fmin(old, by);
    return flat.scatter(1, places, torch::where(wanted, tight, old)).view(end.sizes());
  };
  range = {tightened(range.lower, found.lower, true), tightened(range.upper, found.upper, false)};
}

// The identity of some numbers [S], or [S, N], of a tensor like `like` [N, …]: [S, N, …].
Coefficients identity(const torch::Tensor& like, const torch::Tensor& numbers) {
  const int64_t rows = like.size(0), count = numbers.size(0);
  const bool alike = numbers.dim() == 1;  // for all rows
  const torch::Tensor one =
      torch::zeros({count, alike ? 1 : rows, like.numel() / rows}, like.options())
          .scatter_(2, alike ? numbers.view({-1, 1, 1}) : numbers.unsqueeze(2), 1);
  std::vector<int64_t> shape = like.sizes().vec();
  shape[0] = alike ? 1 : rows;
  shape.insert(shape.begin(), count);
  const torch::Tensor tensor = one.view(shape);
  shape[1] = rows;
  const torch::Tensor all = tensor.expand(shape);
  return {all, all};
}

// Of one side of the coefficients [S, N, D]: A·v, its reach ‖A·scale‖* · r, and Σ |A·v|.
struct Concrete {
  torch::Tensor value, reach, size;  // the last undefined where nobody asks
};
Concrete over_ball(const Ball& ball, const torch::Tensor& flat, bool with_size) {
  const int64_t count = flat.size(0), rows = flat.size(1);
  const torch::Tensor center = ball.center.reshape({rows, -1});
  const torch::Tensor scale =
      ball.scale.defined() ? row_scale(ball).reshape({-1}) : torch::Tensor();
  if (ball.norm == Norm::kInf && takes_loops(flat)) {
    const RowReach sums = row_reach(flat, center, scale, with_size);
    return {sums.value, sums.reach * ball.radius, sums.size};
  }
  const torch::Tensor scaled = scale.defined() ? flat * scale : flat;
  const torch::Tensor norms =
      dual_norm(scaled.reshape({count * rows, -1}), ball.norm).view({count, rows});
  return {row_dots(flat, center), norms * ball.radius,
          with_size ? row_dots(flat.abs(), center.abs()) : torch::Tensor()};
}

// A·v + b ∓ r‖A·scale‖*, as [N, S]. With outward rounding, sums in double precision are allowed
// a relative error of 2⁻⁴⁶ and a bit for their length.
Range concretize(const LinearHead& linear, const Coefficients& coefficients, const Biases& biases) {
  if (!coefficients.defined()) return {biases.lower.t(), biases.upper.t()};
  const bool outward = linear.head->unit > 0;
  const auto side = [&](const torch::Tensor& a, const torch::Tensor& bias, double sign) {
    const torch::Tensor flat = a.reshape({a.size(0), a.size(1), -1});
    const Concrete at = over_ball(linear.ball, flat, outward);
    torch::Tensor result = at.value + bias + at.reach * sign;
    if (outward) {
      const double slack = std::ldexp(64.0 + static_cast<double>(flat.size(2)), -52);
      result = result + (at.size + bias.abs() + at.reach) * (sign * slack);
    }
    return result.t();
  };
  return {side(coefficients.lower, biases.lower, -1), side(coefficients.upper, biases.upper, 1)};
}

}  // namespace

Range bound_numbers(const LinearHead& linear, int slot, const torch::Tensor& numbers,
                    const FreeSteps& free) {
  const std::vector<Step>& steps = linear.head->network->steps();
  std::vector<Coefficients> coefficients(linear.ranges.size());
  const auto at = [&](int s) -> Coefficients& { return coefficients[static_cast<size_t>(s)]; };
  const torch::Tensor& like = linear.ranges[static_cast<size_t>(slot)].lower;
  at(slot) = identity(like, numbers);
  const torch::Tensor zero =
      torch::zeros({numbers.size(0), linear.ball.center.size(0)}, like.options());
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
    const FreeStep* lines = i < free.size() && free[i].defined() ? &free[i] : nullptr;
    std::vector<Coefficients> inputs;
    try {
      inputs = step_back(*step.op, linear.steps[i], outputs, biases, lines);
    } catch (const c10::Error& error) {
      fail_libtorch(describe(step.node), error);
    }
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (step.inputs[k] >= 0 && inputs[k].defined()) at(step.inputs[k]) += inputs[k];
    }
  }
  return concretize(linear, at(linear.head->network->input_slots()[0]), biases);
}

Range bound_in_chunks(const LinearHead& linear, int slot, const torch::Tensor& numbers,
                      const BoundWay& way) {
  const int64_t count = numbers.size(0), chunk = linear.numbers_at_once;
  Tensors lower, upper;
  for (int64_t first = 0; first < count; first += chunk) {
    const torch::Tensor some = numbers.narrow(0, first, std::min(chunk, count - first));
    const Range part = way ? way(linear, slot, some) : bound_numbers(linear, slot, some);
    lower.push_back(part.lower);
    upper.push_back(part.upper);
  }
  return {torch::cat(lower, 1), torch::cat(upper, 1)};
}

Range bound_slot(const LinearHead& linear, int slot, const BoundWay& way) {
  const torch::Tensor& like = linear.ranges[static_cast<size_t>(slot)].lower;
  const torch::Tensor all = torch::arange(like.numel() / like.size(0), like.device());
  const Range range = bound_in_chunks(linear, slot, all, way);
  return {range.lower.view(like.sizes()), range.upper.view(like.sizes())};
}

LinearHead make_linear_head(const PreparedHead& head, const Ball& ball, const FirstOutputs& first,
                            const HiddenRanges& hidden, int64_t numbers_at_once) {
  LinearHead linear;
  linear.head = &head;
  linear.ball = ball;
  linear.numbers_at_once = std::max<int64_t>(1, numbers_at_once);
  linear.fans = static_cast<bool>(hidden.improve);
  const std::vector<Step>& steps = head.network->steps();
  const std::vector<SlotNeed> needs =
      hidden.refine ? slot_needs(head) : std::vector<SlotNeed>(head.constants.size());
  walk_forwards(head, ball, first, /*keep=*/true, [&](size_t i, Ranges& ranges) {
    linear.steps.resize(i);
    linear.steps.push_back(make_linear_step(*steps[i].op, head.plans[i].rule,
                                            step_inputs(steps[i], ranges),
                                            step_ranges(steps[i], ranges), head.unit, linear.fans));
    mark_overflow(steps[i], ranges, linear.steps.back());
    linear.ranges = ranges;  // tensors are shared, not copied
    if (first[i].center.defined()) return;
    for (const int slot : steps[i].outputs) {
      if (slot < 0) continue;
      const SlotNeed need = needs[static_cast<size_t>(slot)];
      if (need == SlotNeed::kNothing) continue;
      Range& range = ranges[static_cast<size_t>(slot)];
      refine_slot(linear, slot, need, {}, std::numeric_limits<int64_t>::max(), range);
      if (hidden.improve) refine_slot(linear, slot, need, hidden.improve, hidden.most, range);
    }
    linear.ranges = ranges;
  });
  linear.steps.resize(steps.size());
  return linear;
}

}  // namespace fcp
