// Activations that bend, after the ONNX operator definitions; the formula stands beside each. Those
// made of straight lines are in hinges.cc.
// Tested by tests/nn/ops/activations_test.cc.
#include <cmath>
#include <string>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/shared.h"

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

}  // namespace fcp
