// Activations that bend, after the ONNX operator definitions; the formula stands beside each. Those
// made of straight lines stand at the end.
// Tested by tests/nn/ops/activations_test.cc.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/shared.h"
#include "fcp/nn/runtime/device_waits.h"

namespace fcp {
namespace {

// scale · x for x > 0, scale · α(exp(x · rate) − 1) below: Elu, Selu and Celu.
OpPointer exponential_linear_op(OpArguments& arguments, double alpha, double scale, double rate) {
  const auto value = [=](const torch::Tensor& x) { return torch::elu(x, alpha, scale, rate); };
  const double bend = scale * alpha;
  const auto slope = [=](const torch::Tensor& x) {
    return torch::where(x > 0, torch::full_like(x, scale), torch::exp(x * rate) * (bend * rate));
  };
  Curve curve = make_curve(value, slope, {bend > 0 ? 1 : bend < 0 ? -1 : 0, 0}, {0});
  curve.rising = scale >= 0 && bend * rate >= 0;
  curve.error_1 = std::abs(bend);  // the 1 that exp(x) − 1 subtracts
  return floating_unary_op(arguments, value, std::move(curve));
}

torch::Tensor gelu_slope(const torch::Tensor& x) {  // Φ(x) + x φ(x)
  return (torch::erf(x * 0.7071067811865476) + 1) / 2 +
         x * torch::exp(x.square() / -2) * 0.3989422804014327;
}

torch::Tensor tanh_gelu_slope(const torch::Tensor& x) {
  constexpr double kScale = 0.7978845608028654, kCubic = 0.044715;
  const torch::Tensor t = torch::tanh((x + x.pow(3) * kCubic) * kScale);
  const torch::Tensor inner = (x.square() * (3 * kCubic) + 1) * kScale;
  return (t + 1) / 2 + x / 2 * (1 - t.square()) * inner;
}

}  // namespace

OpPointer make_elu(OpArguments& arguments) {
  return exponential_linear_op(arguments, arguments.number("alpha", 1), 1, 1);
}

OpPointer make_selu(OpArguments& arguments) {
  const double alpha = arguments.number("alpha", 1.67326319217681884765625);
  const double gamma = arguments.number("gamma", 1.05070102214813232421875);
  return exponential_linear_op(arguments, alpha, gamma, 1);
}

OpPointer make_celu(OpArguments& arguments) {
  const double alpha = arguments.number("alpha", 1);
  if (alpha == 0) fail(describe(arguments.node()), ": attribute 'alpha' is 0, and divides");
  return exponential_linear_op(arguments, alpha, 1, 1 / alpha);
}

OpPointer make_sigmoid(OpArguments& arguments) {
  const auto sigmoid = [](const torch::Tensor& x) { return torch::sigmoid(x); };
  const auto slope = [](const torch::Tensor& x) { return torch::sigmoid(x) * torch::sigmoid(-x); };
  return floating_unary_op(arguments, sigmoid, make_rising_curve(sigmoid, slope, {1, -1}, {0}));
}

// x · max(0, min(1, x/6 + 1/2)).
OpPointer make_hard_swish(OpArguments& arguments) {
  const auto hardswish = own_activation([](const torch::Tensor& x) { return torch::hardswish(x); },
                                        {ActivationKind::kHardSwish});
  const auto slope = [](const torch::Tensor& x) {
    const torch::Tensor right = (x > 3).to(x.scalar_type());
    return torch::where(x.abs() < 3, (x * 2 + 3) / 6, right);
  };
  Curve curve = make_curve(hardswish, slope, {0, 1, 0}, {-3, 3});
  curve.turns = {-1.5};
  curve.error_x = 1;
  return alike_unary_op(arguments, hardswish, std::move(curve));
}

OpPointer make_tanh(OpArguments& arguments) {
  const auto tanh = [](const torch::Tensor& x) { return torch::tanh(x); };
  const auto slope = [](const torch::Tensor& x) { return torch::cosh(x).square().reciprocal(); };
  return floating_unary_op(arguments, tanh, make_rising_curve(tanh, slope, {1, -1}, {0}));
}

// ln(1 + exp(x)); beyond 40 that is x to the last bit, in double precision too (libtorch's own
// threshold of 20 is not enough there).
OpPointer make_softplus(OpArguments& arguments) {
  const auto softplus = [](const torch::Tensor& x) { return torch::softplus(x, 1, 40); };
  const auto slope = [](const torch::Tensor& x) { return torch::sigmoid(x); };
  return floating_unary_op(arguments, softplus, make_rising_curve(softplus, slope, {1}));
}

// x / (1 + |x|).
OpPointer make_softsign(OpArguments& arguments) {
  const auto softsign = [](const torch::Tensor& x) { return x / (x.abs() + 1); };
  const auto slope = [](const torch::Tensor& x) { return (x.abs() + 1).square().reciprocal(); };
  return floating_unary_op(arguments, softsign, make_rising_curve(softsign, slope, {1, -1}, {0}));
}

// x · tanh(ln(1 + exp(x))): convex between two places, concave outside, least near −1.19.
OpPointer make_mish(OpArguments& arguments) {
  const auto mish = [](const torch::Tensor& x) {
    return x * torch::tanh(torch::softplus(x, 1, 40));
  };
  const auto slope = [](const torch::Tensor& x) {
    const torch::Tensor t = torch::tanh(torch::softplus(x, 1, 40));
    return t + x * (1 - t.square()) * torch::sigmoid(x);
  };
  Curve curve = make_curve(mish, slope, {-1, 1, -1}, {-2.256376396360793, 1.4905711794854284});
  curve.turns = {-1.1924312145154954};
  curve.error_x = 1;
  return floating_unary_op(arguments, mish, std::move(curve));
}

// x · sigmoid(αx): for α > 0 convex between two places, concave outside, least near −1.28 / α.
OpPointer make_swish(OpArguments& arguments) {
  const double alpha = arguments.number("alpha", 1);
  const auto swish = [alpha](const torch::Tensor& x) { return x * torch::sigmoid(x * alpha); };
  const auto slope = [alpha](const torch::Tensor& x) {
    const torch::Tensor s = torch::sigmoid(x * alpha);
    return s + x * s * (1 - s) * alpha;
  };
  if (!(alpha > 0)) return floating_unary_op(arguments, swish, {});
  const double knot = 2.3993572805154200 / alpha;
  Curve curve = make_curve(swish, slope, {-1, 1, -1}, {-knot, knot});
  curve.turns = {-1.2784645427610738 / alpha};
  curve.error_x = 1;
  return floating_unary_op(arguments, swish, std::move(curve));
}

// x Φ(x); or its approximation x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³))). Convex between two
// points near ±√2, concave outside; least near −3/4.
OpPointer make_gelu(OpArguments& arguments) {
  const std::string approximate = arguments.text("approximate", "none");
  if (approximate != "none" && approximate != "tanh") {
    fail(describe(arguments.node()), ": attribute 'approximate' is '", approximate,
         "', expected 'none' or 'tanh'");
  }
  const bool exact = approximate == "none";
  // Written out: libtorch may hand its own to another library, by the size of the tensor.
  const auto plain = [exact](const torch::Tensor& x) {
    if (exact) return x * (torch::erf(x * 0.7071067811865476) + 1) / 2;
    return x * (torch::tanh((x + x * x * x * 0.044715) * 0.7978845608028654) + 1) / 2;
  };
  const UnaryFunction gelu =
      exact ? own_activation(plain, {ActivationKind::kGelu}) : UnaryFunction(plain);
  const double knot = exact ? 1.4142135623730951 : 1.4185040087908284;
  Curve curve = make_curve(gelu, exact ? gelu_slope : tanh_gelu_slope, {-1, 1, -1}, {-knot, knot});
  curve.turns = {exact ? -0.75179152469356446 : -0.75246142207101626};
  curve.error_x = 1;
  if (exact) return alike_unary_op(arguments, gelu, std::move(curve));
  return floating_unary_op(arguments, gelu, std::move(curve));
}

// Sine and cosine, their relatives and inverses. Intervals of sine and cosine: the ends' values,
// and 1 or −1 where the range holds a crest or a trough. Those that bend once are curves.
// Reference: ONNX operator specification. Tested by tests/nn/ops/jumps_test.cc.

namespace {

constexpr double kTurn = 6.283185307179586;

// sin(x + phase); the phase is 0, or a quarter turn for the cosine.
class WaveOp : public Op {
 public:
  WaveOp(OpArguments& arguments, bool cosine) : node_(arguments.node()), cosine_(cosine) {
    arguments.expect_inputs(1, 1);
  }
  Tensors forward(const Tensors& inputs) const override {
    if (!inputs[0].is_floating_point()) {
      fail(describe(node_), ": input is ", inputs[0].scalar_type(),
           ", expected floating-point numbers");
    }
    return {cosine_ ? torch::cos(inputs[0]) : torch::sin(inputs[0])};
  }
  BoundRule bound_rule(const std::vector<bool>&) const override { return BoundRule::kSmooth; }

  // −f is its own second derivative: off the tangent by −f(ξ)d²/2.
  Remainder remainder(const std::vector<Range>& inputs, const Tensors& middles,
                      double unit) const override {
    const torch::Tensor m = middles[0].to(torch::kDouble);
    const torch::Tensor r = torch::maximum(inputs[0].upper.to(torch::kDouble) - m,
                                           m - inputs[0].lower.to(torch::kDouble));
    const Range wave = interval(inputs, unit)[0];
    const torch::Tensor bend = r.square() / 2;
    return {{-bend * wave.upper.clamp_min(0), -bend * wave.lower.clamp_max(0)},
            (m.abs() + r + 1) * (16 * unit) + std::numeric_limits<float>::min()};
  }

  std::vector<Range> interval(const std::vector<Range>& inputs, double unit) const override {
    const torch::ScalarType type = inputs[0].lower.scalar_type();
    const torch::Tensor low = inputs[0].lower.to(torch::kDouble);
    const torch::Tensor high = inputs[0].upper.to(torch::kDouble);
    const torch::Tensor a = forward({low})[0], b = forward({high})[0];
    const double crest = cosine_ ? 0 : kTurn / 4;
    const double slack = 16 * unit;
    torch::Tensor lower = torch::minimum(a, b) - slack, upper = torch::maximum(a, b) + slack;
    lower = lower.masked_fill(holds(low, high, crest + kTurn / 2), -1 - slack);
    upper = upper.masked_fill(holds(low, high, crest), 1 + slack);
    return {{lower.to(type), upper.to(type)}};
  }

 private:
  // Whether the range holds `place` plus any number of turns, or may: beyond 2⁴⁰ it always may.
  static torch::Tensor holds(const torch::Tensor& low, const torch::Tensor& high, double place) {
    constexpr double kNear = 1e-3, kFar = 1e12;  // kNear of a crest the wave is within 1e-6 of it
    const torch::Tensor first = torch::ceil((low - (place + kNear)) / kTurn);
    const torch::Tensor last = torch::floor((high - (place - kNear)) / kTurn);
    const torch::Tensor near = torch::maximum(low.abs(), high.abs()) < kFar;
    return (first <= last).logical_or(near.logical_not());
  }

  Node node_;
  bool cosine_;
};

}  // namespace

OpPointer make_sin(OpArguments& arguments) { return std::make_unique<WaveOp>(arguments, false); }
OpPointer make_cos(OpArguments& arguments) { return std::make_unique<WaveOp>(arguments, true); }

OpPointer make_tan(OpArguments& arguments) {
  return floating_unary_op(arguments, [](const torch::Tensor& x) { return torch::tan(x); }, {});
}

OpPointer make_asin(OpArguments& arguments) {
  return floating_unary_op(arguments, [](const torch::Tensor& x) { return torch::asin(x); }, {});
}

OpPointer make_acos(OpArguments& arguments) {
  return floating_unary_op(arguments, [](const torch::Tensor& x) { return torch::acos(x); }, {});
}

OpPointer make_atan(OpArguments& arguments) {
  const auto atan = [](const torch::Tensor& x) { return torch::atan(x); };
  const auto slope = [](const torch::Tensor& x) { return torch::reciprocal(x.square() + 1); };
  return floating_unary_op(arguments, atan, make_rising_curve(atan, slope, {1, -1}, {0}));
}

OpPointer make_sinh(OpArguments& arguments) {
  const auto sinh = [](const torch::Tensor& x) { return torch::sinh(x); };
  const auto slope = [](const torch::Tensor& x) { return torch::cosh(x); };
  return floating_unary_op(arguments, sinh, make_rising_curve(sinh, slope, {-1, 1}, {0}));
}

OpPointer make_cosh(OpArguments& arguments) {
  const auto cosh = [](const torch::Tensor& x) { return torch::cosh(x); };
  const auto slope = [](const torch::Tensor& x) { return torch::sinh(x); };
  Curve curve = make_curve(cosh, slope, {1});
  curve.turns = {0};
  return floating_unary_op(arguments, cosh, std::move(curve));
}

OpPointer make_asinh(OpArguments& arguments) {
  const auto asinh = [](const torch::Tensor& x) { return torch::asinh(x); };
  const auto slope = [](const torch::Tensor& x) { return torch::rsqrt(x.square() + 1); };
  return floating_unary_op(arguments, asinh, make_rising_curve(asinh, slope, {1, -1}, {0}));
}

OpPointer make_acosh(OpArguments& arguments) {
  return floating_unary_op(arguments, [](const torch::Tensor& x) { return torch::acosh(x); }, {});
}

OpPointer make_atanh(OpArguments& arguments) {
  return floating_unary_op(arguments, [](const torch::Tensor& x) { return torch::atanh(x); }, {});
}

// Activations made of straight lines, after the ONNX operator definitions; the formula stands
// beside each. Tested by tests/nn/ops/activations_test.cc.

namespace {

// x for x ≥ 0, slope · x below; the slope broadcasts to x by numpy's rule, from the last dimension.
class PReluOp : public Op {
 public:
  explicit PReluOp(OpArguments& arguments) : node_(arguments.node()) {
    arguments.expect_inputs(2, 2);
  }
  Tensors forward(const Tensors& inputs) const override {
    const Tensors pair = broadcast_inputs(inputs, node_);
    const torch::Tensor& x = pair[0];
    const torch::Tensor& slope = pair[1];
    if (broadcast_shape(x.sizes(), slope.sizes(), node_) != x.sizes()) {
      fail(describe(node_), ": slope of shape ", slope.sizes(), " does not broadcast to input of ",
           x.sizes());
    }
    return {torch::where(x < 0, slope.to(x.scalar_type()) * x, x)};
  }

  BoundRule bound_rule(const std::vector<bool>& constant) const override {
    return constant[1] ? BoundRule::kCurve : BoundRule::kNone;
  }
  Curve curve(const Tensors& inputs) const override {
    const torch::Tensor slope = inputs[1].to(torch::kDouble);
    const auto value = [slope](const torch::Tensor& x) {
      return torch::where(x < 0, slope * x, x);
    };
    const auto derivative = [slope](const torch::Tensor& x) {
      return torch::where(x < 0, slope.expand_as(x), torch::ones_like(x));
    };
    Curve curve = make_curve(value, derivative, {0, 0}, {0});
    curve.hinge = true;
    return curve;
  }

 private:
  Node node_;
};

// min(max(x, lower), upper): so the upper bound wins where the two cross. An absent bound bounds
// nothing. The bounds are attributes before opset 11, inputs of one element since.
class ClipOp : public Op {
 public:
  explicit ClipOp(OpArguments& arguments) : node_(arguments.node()) {
    if (arguments.opset() >= 11) {
      arguments.expect_inputs(1, 3);
      return;
    }
    arguments.expect_inputs(1, 1);
    if (arguments.has("min")) lower_ = torch::tensor(arguments.number("min", 0), torch::kDouble);
    if (arguments.has("max")) upper_ = torch::tensor(arguments.number("max", 0), torch::kDouble);
  }

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    const torch::Tensor lower = bound(inputs.size() > 1 ? inputs[1] : lower_, x, "min");
    const torch::Tensor upper = bound(inputs.size() > 2 ? inputs[2] : upper_, x, "max");
    if (lower.defined() && upper.defined()) return {torch::clamp(x, lower, upper)};
    if (lower.defined()) return {torch::clamp_min(x, lower)};
    if (upper.defined()) return {torch::clamp_max(x, upper)};
    return {x};
  }

  BoundRule bound_rule(const std::vector<bool>& constant) const override {
    return affine_in_first(constant) == BoundRule::kAffine ? BoundRule::kCurve : BoundRule::kNone;
  }
  Curve curve(const Tensors& inputs) const override {
    Curve curve;
    curve.rising = true;
    curve.roundings = 0;
    const torch::Tensor lower = inputs.size() > 1 ? inputs[1] : lower_;
    const torch::Tensor upper = inputs.size() > 2 ? inputs[2] : upper_;
    double low = -std::numeric_limits<double>::infinity(), high = -low;
    if (upper.defined()) high = host_upper_.single(upper);
    if (lower.defined()) low = std::min(high, host_lower_.single(lower));
    for (const double knot : {low, high}) {
      if (std::isfinite(knot)) curve.knots.push_back(knot);
    }
    curve.curvature.assign(curve.knots.size() + 1, 0);
    curve.value = [low, high](const torch::Tensor& x) { return x.clamp(low, high); };
    curve.slope = [low, high](const torch::Tensor& x) {
      return (x > low).logical_and(x < high).to(x.scalar_type());
    };
    return curve;
  }

 private:
  torch::Tensor bound(const torch::Tensor& given, const torch::Tensor& x, const char* what) const {
    if (!given.defined()) return given;
    if (given.numel() != 1) {
      fail(describe(node_), ": ", what, " has shape ", given.sizes(), ", expected one number");
    }
    if (given.scalar_type() != x.scalar_type() &&
        !(given.is_floating_point() && x.is_floating_point())) {
      fail(describe(node_), ": ", what, " is ", given.scalar_type(), " but the input is ",
           x.scalar_type());
    }
    return given.reshape({}).to(x.options());
  }

  Node node_;
  torch::Tensor lower_;
  torch::Tensor upper_;
  mutable HostNumbers host_lower_, host_upper_;
};

}  // namespace

OpPointer make_relu(OpArguments& arguments) {
  arguments.expect_inputs(1, 1);
  const auto relu = [](const torch::Tensor& x) { return torch::relu(x); };
  const auto slope = [](const torch::Tensor& x) { return (x > 0).to(x.scalar_type()); };
  Curve curve = make_rising_curve(relu, slope, {0, 0}, {0});
  curve.hinge = true;
  curve.roundings = 0;
  return unary_op(relu, std::move(curve));
}

// x for x ≥ 0, αx below.
OpPointer make_leaky_relu(OpArguments& arguments) {
  const double alpha = arguments.number("alpha", 0.01f);
  const auto value = [alpha](const torch::Tensor& x) { return torch::leaky_relu(x, alpha); };
  const auto slope = [alpha](const torch::Tensor& x) {
    return torch::where(x > 0, torch::ones_like(x), torch::full_like(x, alpha));
  };
  Curve curve = make_curve(value, slope, {0, 0}, {0});
  curve.rising = alpha >= 0;
  curve.hinge = true;
  return floating_unary_op(arguments, value, std::move(curve));
}

OpPointer make_prelu(OpArguments& arguments) { return std::make_unique<PReluOp>(arguments); }

OpPointer make_clip(OpArguments& arguments) { return std::make_unique<ClipOp>(arguments); }

// max(0, min(1, αx + β)).
OpPointer make_hard_sigmoid(OpArguments& arguments) {
  const double alpha = arguments.number("alpha", 0.2f);
  const double beta = arguments.number("beta", 0.5);
  const auto value = own_activation(
      [=](const torch::Tensor& x) { return torch::clamp(x * alpha + beta, 0, 1); },
      {ActivationKind::kHardSigmoid, static_cast<float>(alpha), static_cast<float>(beta)});
  const auto slope = [=](const torch::Tensor& x) {
    const torch::Tensor y = x * alpha + beta;
    return (y > 0).logical_and(y < 1).to(x.scalar_type()) * alpha;
  };
  std::vector<double> knots;
  if (alpha != 0) knots = {-beta / alpha, (1 - beta) / alpha};
  std::sort(knots.begin(), knots.end());
  Curve curve = make_curve(value, slope, std::vector<int>(knots.size() + 1, 0), knots);
  curve.error_x = std::abs(alpha);
  curve.error_1 = std::abs(beta) + 1;
  return alike_unary_op(arguments, value, std::move(curve));
}

}  // namespace fcp
