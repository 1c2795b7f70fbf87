#include "fcp/bounds/linear_step.h"

#include <exception>
#include <limits>
#include <utility>
#include <vector>

#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/nn/kernels/cpu/line_rows.h"
#include "fcp/nn/kernels/cpu/row_product.h"
#include "fcp/nn/kernels/cuda/cuda_kernels.h"
#include "fcp/nn/kernels/cuda/free_lines_cuda.h"
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

namespace {

// By the operator's own way, if it has one, which does not look at rows: coefficients that are
// alike for all rows, as those of a walk's first step are, go back once.
torch::Tensor pulled_back(const Op& op, const torch::Tensor& coefficients, const Tensors& inputs) {
  const int64_t rows = coefficients.size(1);
  if (rows == 1 || coefficients.stride(1) != 0) return op.pull_back(coefficients, inputs);
  const torch::Tensor one = op.pull_back(coefficients.narrow(1, 0, 1), inputs);
  if (!one.defined()) return {};
  std::vector<int64_t> shape = one.sizes().vec();
  shape[1] = rows;
  return one.expand(shape);
}

std::vector<Coefficients> through_affine(const LinearFunction& function, const LinearStep& step,
                                         const std::vector<Coefficients>& outputs, const Op* op) {
  const auto one_side = [&](torch::Tensor Coefficients::*side) {
    if (op != nullptr && outputs.size() == 1) {
      const torch::Tensor direct = pulled_back(*op, outputs[0].*side, step.inputs);
      if (direct.defined()) return Tensors{direct};
    }
    Tensors coefficients;
    for (const Coefficients& output : outputs) coefficients.push_back(output.*side);
    return vector_jacobian(function, step, coefficients);
  };
  bool same = true;
  for (const Coefficients& output : outputs) same = same && output.lower.is_same(output.upper);
  const Tensors lower = one_side(&Coefficients::lower);
  const Tensors upper = same ? lower : one_side(&Coefficients::upper);
  std::vector<Coefficients> inputs(step.inputs.size());
  size_t next = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!step.varies[i]) continue;
    inputs[i] = {lower[next], upper[next]};
    ++next;
  }
  return inputs;
}

void add_affine_constants(const LinearStep& step, const std::vector<Coefficients>& outputs,
                          Biases& biases) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined()) continue;
    const auto& [lower, upper] = outputs[i];
    const auto sums = [&](const torch::Tensor& values, bool magnitude) {
      const torch::Tensor low = careful_row_sums(lower, values, step.rows, magnitude);
      return Biases{
          low, lower.is_same(upper) ? low : careful_row_sums(upper, values, step.rows, magnitude)};
    };
    if (i < step.constants.size() && step.constants[i].defined()) {
      const Biases constants = sums(step.constants[i], false);
      biases = {biases.lower + constants.lower, biases.upper + constants.upper};
    }
    if (i < step.errors.size() && step.errors[i].defined()) {
      const Biases errors = sums(step.errors[i], true);
      biases = {biases.lower - errors.lower, biases.upper + errors.upper};
    }
  }
}

struct CurveLine {
  torch::Tensor slope, bias;
};

// The line at a place [S, N, …] of a fan: between two neighbours, in proportion.
CurveLine fan_line(const Fan& fan, const torch::Tensor& place) {
  const int64_t last = fan.slopes.size(0) - 1;
  const torch::Tensor at = place * static_cast<double>(last);
  const torch::Tensor first = at.detach().floor().clamp(0, last - 1);
  const torch::Tensor share = at - first, index = first.to(torch::kLong);
  const auto mean = [&](const torch::Tensor& lines) {
    const torch::Tensor start = lines.gather(0, index);
    return start + (lines.gather(0, index + 1) - start) * share;
  };
  return {mean(fan.slopes), mean(fan.biases)};
}

CurveLine line_below(const Relaxation& lines, const FreeLines* free) {
  if (free == nullptr) return {lines.lower_slope, lines.lower_bias};
  if (!lines.below.slopes.defined()) return {free->below, lines.lower_bias};
  return fan_line(lines.below, free->below);
}

CurveLine line_above(const Relaxation& lines, const FreeLines* free) {
  if (free == nullptr || !free->above.defined()) return {lines.upper_slope, lines.upper_bias};
  return fan_line(lines.above, free->above);
}

// Σ over everything but S and N of products [S, N', …], 0 where a is.
torch::Tensor bias_sums(const torch::Tensor& a, const torch::Tensor& bias, int64_t rows) {
  if (bias.dim() < a.dim()) return careful_row_sums(a, bias, rows);
  const torch::Tensor used = a.ne(0).logical_or(bias.isfinite());
  const torch::Tensor product = a * torch::where(used, bias, torch::zeros({}, bias.options()));
  return sum_rows(product.reshape({a.size(0) * rows, -1})).reshape({a.size(0), rows});
}

//   Σ A·f(x) ≥ Σ (A⁺·lower_slope + A⁻·upper_slope) x + Σ (A⁺·lower_bias + A⁻·upper_bias)
Coefficients through_curve(const LinearStep& step, const Coefficients& output, Biases& biases,
                           const FreeStep* free) {
  const auto one_side = [&](const torch::Tensor& a, torch::Tensor& bias, double sign,
                            const FreeLines* lines) {
    const CurveLine below = line_below(step.lines, lines), above = line_above(step.lines, lines);
    const CurveLine& at_plus = sign > 0 ? below : above;
    const CurveLine& at_minus = sign > 0 ? above : below;
    if (lines == nullptr && takes_loops(a) && a.size(1) % step.rows == 0) {
      return along_lines(a, {at_plus.slope, at_plus.bias, at_minus.slope, at_minus.bias}, step.rows,
                         bias);
    }
    if constexpr (kCudaKernels) {
      const bool hinge = lines != nullptr && !step.lines.below.slopes.defined();
      if (hinge && takes_free_lines_cuda(a, step.rows)) {
        const HingeResult made = along_free_lines_cuda(
            a, {below.slope, below.bias, above.slope, above.bias, /*plus=*/sign > 0});
        bias = bias + made.sums;
        return made.out;
      }
    }
    const torch::Tensor plus = a.clamp_min(0), minus = a.clamp_max(0);
    bias = bias + bias_sums(plus, at_plus.bias, step.rows) +
           bias_sums(minus, at_minus.bias, step.rows);
    return plus * at_plus.slope + minus * at_minus.slope;
  };
  const torch::Tensor lower =
      one_side(output.lower, biases.lower, 1, free != nullptr ? &free->for_lower : nullptr);
  const torch::Tensor upper =
      one_side(output.upper, biases.upper, -1, free != nullptr ? &free->for_upper : nullptr);
  return {lower, upper};
}

//   x_winner ≤ max x ≤ x_winner where it is sure to win, else the largest upper end.
std::vector<Coefficients> through_largest(const Op& op, const LinearStep& step,
                                          const Coefficients& given, Biases& biases) {
  const bool smallest = step.rule == BoundRule::kSmallest;  // min x = −max(−x)
  const torch::Tensor lower = smallest ? -given.lower : given.lower;
  const torch::Tensor upper = smallest ? -given.upper : given.upper;
  biases.lower = biases.lower + careful_row_sums(lower.clamp_max(0), step.largest, step.rows);
  biases.upper = biases.upper + careful_row_sums(upper.clamp_min(0), step.largest, step.rows);
  Coefficients chosen = {lower.clamp_min(0).unsqueeze(-1) * step.winner +
                             lower.clamp_max(0).unsqueeze(-1) * step.sure_winner,
                         upper.clamp_min(0).unsqueeze(-1) * step.sure_winner +
                             upper.clamp_max(0).unsqueeze(-1) * step.winner};
  if (smallest) chosen = {-chosen.lower, -chosen.upper};
  add_affine_constants(step, {chosen}, biases);
  const LinearFunction gather = [&op](const Tensors& inputs) {
    return Tensors{op.candidates(inputs)};
  };
  return through_affine(gather, step, {chosen}, nullptr);
}

// Planes of some outputs go along the tangent, f'(m)(x − m): by the gradient at m, and −f'(m)m.
std::vector<Coefficients> through_planes(const Op& op, const LinearStep& step,
                                         const std::vector<Coefficients>& outputs, Biases& biases) {
  std::vector<Coefficients> along;
  bool any = false;
  for (size_t i = 0; i < outputs.size(); ++i) {
    along.push_back(outputs[i].defined()
                        ? between_planes(step.planes[i], outputs[i], step.rows, biases)
                        : Coefficients());
    any = any || along.back().defined();
  }
  if (!any) return std::vector<Coefficients>(step.inputs.size());
  const LinearFunction forward = [&op](const Tensors& inputs) { return op.forward(inputs); };
  std::vector<Coefficients> inputs = through_affine(forward, step, along, nullptr);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) continue;
    for (torch::Tensor* side : {&inputs[i].lower, &inputs[i].upper}) {
      // No number where f has no tangent; none of the outputs there goes along it.
      *side = side->masked_fill(side->isnan(), 0);
    }
    biases.lower = biases.lower - careful_row_sums(inputs[i].lower, step.inputs[i], step.rows);
    biases.upper = biases.upper - careful_row_sums(inputs[i].upper, step.inputs[i], step.rows);
  }
  return inputs;
}

}  // namespace

std::vector<Coefficients> step_back(const Op& op, const LinearStep& step,
                                    const std::vector<Coefficients>& outputs, Biases& biases,
                                    const FreeStep* free) {
  if (step.rule == BoundRule::kCurve) {
    std::vector<Coefficients> inputs(step.inputs.size());
    inputs[0] = through_curve(step, outputs[0], biases, free);
    return inputs;
  }
  if (!step.planes.empty()) return through_planes(op, step, outputs, biases);
  const bool affine = step.rule == BoundRule::kAffine;
  if (!affine && step.rule != BoundRule::kBilinear) {
    return through_largest(op, step, outputs[0], biases);
  }
  add_affine_constants(step, outputs, biases);
  const LinearFunction forward = [&op](const Tensors& inputs) { return op.forward(inputs); };
  return through_affine(forward, step, outputs, affine ? &op : nullptr);
}

namespace {

// Whether running S copies of the rows at once gives S copies of the outputs.
bool copies(const Tensors& outputs, const Tensors& coefficients) {
  for (size_t i = 0; i < coefficients.size(); ++i) {
    if (!coefficients[i].defined()) continue;
    std::vector<int64_t> shape = coefficients[i].sizes().slice(1).vec();
    shape[0] *= coefficients[i].size(0);
    if (outputs[i].sizes() != torch::IntArrayRef(shape)) return false;
  }
  return true;
}

// Coefficients of the varying inputs at one call of the function: the vector-Jacobian product.
// Undefined where the function does not accept that many rows.
Tensors product_at_once(const LinearFunction& function, const LinearStep& step,
                        const Tensors& coefficients, int64_t count) {
  Tensors inputs = step.inputs, variables;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!step.varies[i]) continue;
    std::vector<int64_t> shape = inputs[i].sizes().vec();
    if (step.rule == BoundRule::kBilinear || step.rule == BoundRule::kSmooth) {
      shape.insert(shape.begin(), count);
      inputs[i] = inputs[i].unsqueeze(0).expand(shape).flatten(0, 1).detach().requires_grad_();
    } else {
      shape[0] *= count;
      inputs[i] = zeros_like_shape(inputs[i], shape).requires_grad_();
    }
    variables.push_back(inputs[i]);
  }
  Tensors outputs;
  try {
    outputs = function(inputs);
  } catch (const std::exception&) {
    if (count == 1) throw;
    return {};
  }
  if (!copies(outputs, coefficients)) return {};
  Tensors wanted, weights;
  for (size_t i = 0; i < coefficients.size(); ++i) {
    if (!coefficients[i].defined()) continue;
    wanted.push_back(outputs[i]);
    weights.push_back(coefficients[i].reshape(outputs[i].sizes()));
  }
  bool graph = false;
  for (const torch::Tensor& weight : weights) graph = graph || weight.requires_grad();
  Tensors gradients = torch::autograd::grad(wanted, variables, weights, graph, graph, true);
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) gradients[i] = torch::zeros_like(variables[i]);
    std::vector<int64_t> shape = variables[i].sizes().vec();
    shape[0] /= count;
    shape.insert(shape.begin(), count);
    gradients[i] = gradients[i].reshape(shape);
  }
  return gradients;
}

}  // namespace

torch::Tensor zeros_like_shape(const torch::Tensor& like, std::vector<int64_t> shape) {
  return torch::zeros({1}, like.options()).expand(shape).detach();
}

Tensors vector_jacobian(const LinearFunction& function, const LinearStep& step,
                        const Tensors& coefficients) {
  const torch::AutoGradMode mode(true);
  int64_t count = 0;
  for (const torch::Tensor& each : coefficients) {
    if (each.defined()) count = each.size(0);
  }
  Tensors result = product_at_once(function, step, coefficients, count);
  if (!result.empty()) return result;
  std::vector<Tensors> parts;
  for (int64_t s = 0; s < count; ++s) {
    Tensors one;
    for (const torch::Tensor& each : coefficients) {
      one.push_back(each.defined() ? each.narrow(0, s, 1) : each);
    }
    const Tensors gradients = product_at_once(function, step, one, 1);
    if (gradients.empty()) fail("linear bounds need an operator to keep rows apart");
    parts.resize(gradients.size());
    for (size_t i = 0; i < gradients.size(); ++i) parts[i].push_back(gradients[i]);
  }
  for (const Tensors& part : parts) result.push_back(torch::cat(part));
  return result;
}

}  // namespace fcp
