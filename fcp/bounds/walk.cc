#include "fcp/bounds/walk.h"

#include <cmath>
#include <limits>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/base/special_numbers.h"
#include "fcp/bounds/relax.h"
#include "fcp/nn/graph/carry.h"
#include "fcp/nn/graph/lower_attention.h"
#include "fcp/nn/runtime/device_waits.h"
#include "fcp/nn/runtime/element_types.h"
#include "fcp/nn/runtime/libtorch_error.h"

namespace fcp {
namespace {

// Half a unit in the last place of 1. In double precision the walk rounds as the network does;
// 64 units instead of one pay for that.
double roundoff(torch::ScalarType type) {
  switch (type) {
    case torch::kHalf:
      return std::ldexp(1, -11);
    case torch::kBFloat16:
      return std::ldexp(1, -8);
    case torch::kDouble:
      return std::ldexp(1, -47);
    default:
      return std::ldexp(1, -24);
  }
}

void check_support(const Network& head, const std::vector<BoundPlan>& plans) {
  for (size_t i = 0; i < plans.size(); ++i) {
    if (plans[i].support != BoundSupport::kNone) continue;
    fail(describe(head.steps()[i].node),
         ": has no bounds; cut later, behind it, or use a score that needs no bounds: residual, "
         "linearized");
  }
}

// The numbers of a feature that steps take as constants of their row.
torch::Tensor carried_numbers(const Network& head) {
  Tensors numbers;
  for (const Step& step : head.steps()) {
    if (!takes_carried(step.node)) continue;
    const torch::Tensor& indices = head.constants()[static_cast<size_t>(step.inputs[1])];
    if (step.inputs[0] != head.input_slots()[0] || !indices.defined()) {
      fail(describe(step.node), ": takes what is carried past a cut, but not from the feature");
    }
    numbers.push_back(indices.flatten());
  }
  return numbers.empty() ? torch::Tensor() : torch::cat(numbers);
}

void check_carried(const torch::Tensor& carried, const Ball& ball) {
  const bool fixed = ball.scale.defined() && ball.scale.flatten()
                                                 .index_select(0, carried.to(ball.scale.device()))
                                                 .eq(0)
                                                 .all()
                                                 .item<bool>();
  if (!fixed) fail("a mask that is carried past the cut would vary; its scale must be 0");
}

torch::Tensor nudge(const torch::Tensor& value, double direction) {
  return torch::nextafter(value, torch::full_like(value, direction));
}

// The network overflows where a walk in double precision does not.
Range with_overflow(const PreparedHead& head, const Range& range) {
  if (head.unit == 0 || head.output_type == head.type || !range.lower.is_floating_point()) {
    return range;
  }
  const double most = head.output_type == torch::kHalf ? 65504
                      : head.output_type == torch::kBFloat16
                          ? 3.3895313892515355e38
                          : static_cast<double>(std::numeric_limits<float>::max());
  return {range.lower.masked_fill(range.lower < -most, -kInfinity),
          range.upper.masked_fill(range.upper > most, kInfinity)};
}

// What a step makes of its inputs' ranges, or of constants.
std::vector<Range> step_outputs(const PreparedHead& head, size_t index,
                                const std::vector<Range>& inputs, const Range* known) {
  const Step& step = head.network->steps()[index];
  const BoundPlan& plan = head.plans[index];
  try {
    std::vector<Range> outputs;
    if (!plan.runs) {
      outputs = interval_of(*step.op, plan.rule, inputs, head.unit, known);
      for (Range& output : outputs) output = with_overflow(head, output);
      return outputs;
    }
    for (torch::Tensor output : step.op->forward(lower_ends(inputs))) {
      if (output.defined() && output.is_floating_point()) output = output.to(head.type);
      outputs.push_back({output, output});
    }
    return outputs;
  } catch (const c10::Error& error) {
    fail_libtorch(describe(step.node), error);
  }
}

}  // namespace

PreparedHead prepare_head(std::shared_ptr<const Network> given, const BoundOptions& options) {
  std::shared_ptr<const Network> network = with_attention_lowered(std::move(given));
  if (network->inputs().size() != 1) {
    fail("bounds need a head with one input, found ", network->inputs().size());
  }
  PreparedHead head;
  head.plans = plan_bounds(*network);
  check_support(*network, head.plans);
  head.output_type = scalar_type(network->inputs()[0].type);
  if (!torch::isFloatingType(head.output_type)) {
    fail("bounds need a head of floating-point features, found ", head.output_type);
  }
  head.unit = options.outward ? roundoff(head.output_type) : 0;
  const bool narrow = head.output_type == torch::kHalf || head.output_type == torch::kBFloat16;
  head.type = options.outward ? torch::kDouble : narrow ? torch::kFloat : head.output_type;
  head.constants = network->constants();
  for (torch::Tensor& constant : head.constants) {
    if (constant.defined() && constant.is_floating_point()) constant = constant.to(head.type);
  }
  head.carried = carried_numbers(*network);
  head.network = std::move(network);
  return head;
}

Ball prepare_ball(const PreparedHead& head, const Ball& given) {
  Ball ball = given;
  const auto options = torch::TensorOptions().dtype(head.type).device(head.network->device());
  if (given.center.dim() < 1) fail("bounds need rows of features, found a single number");
  // A walk in double precision of a float head starts from the numbers the head itself sees.
  ball.center = given.center.to(head.output_type).to(options);
  if (given.scale.defined()) ball.scale = given.scale.to(options);
  if (head.carried.defined()) check_carried(head.carried, ball);
  if (given.radius.defined()) ball.radius = prepare_radius(head, ball, given.radius);
  return ball;
}

torch::Tensor prepare_radius(const PreparedHead& head, const Ball& ball,
                             const torch::Tensor& given) {
  if (given.dim() != 1 || given.size(0) != ball.center.size(0)) {
    fail("bounds need one radius for each row, found centers of shape ", ball.center.sizes(),
         " and radii of shape ", given.sizes());
  }
  const torch::Tensor radius =
      given.to(torch::TensorOptions().dtype(head.type).device(head.network->device()));
  const torch::Tensor known = radius >= 0;
  // Where it is not looked at, the range of such a radius is not a number.
  if (!may_read_back(radius)) return radius.masked_fill(known.logical_not(), std::nan(""));
  if (!known.all().item<bool>()) fail("bounds need radii of at least 0");
  return radius;
}

FirstOutputs first_outputs(const PreparedHead& head, const Ball& ball) {
  const Network& network = *head.network;
  const int feature = network.input_slots()[0];
  const Op::BallShape shape = ball.norm == Norm::kInf   ? Op::BallShape::kBox
                              : ball.norm == Norm::kTwo ? Op::BallShape::kRound
                                                        : Op::BallShape::kDiamond;
  FirstOutputs outputs(network.steps().size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Step& step = network.steps()[i];
    if (head.plans[i].rule != BoundRule::kAffine || step.inputs[0] != feature) continue;
    Tensors inputs;
    bool known = true;  // an input that a step computes from shapes alone is not known yet
    for (size_t k = 0; k < step.inputs.size(); ++k) {
      const int slot = step.inputs[k];
      inputs.push_back(slot < 0 ? torch::Tensor() : head.constants[static_cast<size_t>(slot)]);
      known = known && (k == 0 || slot < 0 || inputs.back().defined());
    }
    if (!known) continue;
    try {
      outputs[i] = step.op->over_ball({ball.center, row_scale(ball), shape}, inputs);
    } catch (const c10::Error& error) {
      fail_libtorch(describe(step.node), error);
    }
  }
  return outputs;
}

Range box_around(const PreparedHead& head, const Ball& ball) {
  const torch::Tensor reach = rowwise(ball.radius, ball.center) * row_scale(ball);
  Range box = {ball.center - reach, ball.center + reach};
  if (head.unit > 0) box = {nudge(box.lower, -kInfinity), nudge(box.upper, kInfinity)};
  if (head.carried.defined()) {  // not a roundoff away, and not 0 · ∞
    const torch::Tensor fixed = row_scale(ball) == 0;
    box = {torch::where(fixed, ball.center, box.lower),
           torch::where(fixed, ball.center, box.upper)};
  }
  return box;
}

namespace {

std::vector<Range> ranges_at(const std::vector<int>& slots, const Ranges& ranges) {
  std::vector<Range> result;
  for (const int slot : slots) {
    result.push_back(slot < 0 ? Range() : ranges[static_cast<size_t>(slot)]);
  }
  return result;
}

}  // namespace

std::vector<Range> step_inputs(const Step& step, const Ranges& ranges) {
  return ranges_at(step.inputs, ranges);
}

std::vector<Range> step_ranges(const Step& step, const Ranges& ranges) {
  return ranges_at(step.outputs, ranges);
}

Ranges walk_forwards(const PreparedHead& head, const Ball& ball, const FirstOutputs& first,
                     bool keep, const StepVisitor& visit) {
  const Network& network = *head.network;
  Ranges ranges;
  for (const torch::Tensor& constant : head.constants) ranges.push_back({constant, constant});
  ranges[static_cast<size_t>(network.input_slots()[0])] = box_around(head, ball);
  for (size_t i = 0; i < network.steps().size(); ++i) {
    const Step& step = network.steps()[i];
    Range known;
    if (first[i].center.defined()) {
      const torch::Tensor reach = rowwise(ball.radius, first[i].center) * first[i].reach;
      known = {first[i].center - reach, first[i].center + reach};
    }
    const std::vector<Range> outputs =
        step_outputs(head, i, step_inputs(step, ranges), known.lower.defined() ? &known : nullptr);
    for (size_t k = 0; k < step.outputs.size() && k < outputs.size(); ++k) {
      if (step.outputs[k] >= 0) ranges[static_cast<size_t>(step.outputs[k])] = outputs[k];
    }
    if (visit && !head.plans[i].runs) visit(i, ranges);
    if (keep) continue;
    for (const int slot : step.last_read) ranges[static_cast<size_t>(slot)] = {};
  }
  return ranges;
}

Range finished(const PreparedHead& head, const Range& range) {
  torch::Tensor lower = range.lower.to(head.output_type);
  torch::Tensor upper = range.upper.to(head.output_type);
  if (head.unit > 0 && head.output_type != head.type) {
    lower = torch::where(lower.to(head.type) > range.lower, nudge(lower, -kInfinity), lower);
    upper = torch::where(upper.to(head.type) < range.upper, nudge(upper, kInfinity), upper);
  }
  return {lower.masked_fill(lower.isnan(), -kInfinity),
          upper.masked_fill(upper.isnan(), kInfinity)};
}

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
