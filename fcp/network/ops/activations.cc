// Activations, after the ONNX operator definitions; the formula stands beside each.
// Tested by tests/network/ops_activations_test.cc.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/network/ops/factories.h"
#include "fcp/network/ops/shared.h"

namespace fcp {
namespace {

// An activation with parameters, which acts on each floating-point number by itself.
class ActivationOp : public Op {
 public:
  explicit ActivationOp(OpArguments& arguments) : node_(arguments.node()) {
    arguments.expect_inputs(1, 1);
  }
  Tensors forward(const Tensors& inputs) const final {
    if (!inputs[0].is_floating_point()) {
      fail(describe(node_), ": input is ", inputs[0].scalar_type(),
           ", expected floating-point numbers");
    }
    return {apply(inputs[0])};
  }
  BoundRule bound_rule(const std::vector<bool>&) const final { return BoundRule::kCurve; }

 protected:
  virtual torch::Tensor apply(const torch::Tensor& x) const = 0;

  Curve curve_of(UnaryFunction slope, std::vector<int> bends, std::vector<double> knots) const {
    return make_curve([this](const torch::Tensor& x) { return apply(x); }, std::move(slope),
                      std::move(bends), std::move(knots));
  }

  Node node_;
};

// x for x ≥ 0, αx below.
class LeakyReluOp : public ActivationOp {
 public:
  explicit LeakyReluOp(OpArguments& arguments)
      : ActivationOp(arguments), alpha_(arguments.number("alpha", 0.01f)) {}

  Curve curve(const Tensors&) const override {
    const auto slope = [alpha = alpha_](const torch::Tensor& x) {
      return torch::where(x > 0, torch::ones_like(x), torch::full_like(x, alpha));
    };
    Curve curve = curve_of(slope, {0, 0}, {0});
    curve.rising = alpha_ >= 0;
    curve.hinge = true;
    return curve;
  }

 protected:
  torch::Tensor apply(const torch::Tensor& x) const override {
    return torch::leaky_relu(x, alpha_);
  }

 private:
  double alpha_;
};

// scale · x for x > 0, scale · α(exp(x · rate) − 1) below: Elu, Selu and Celu.
class ExponentialLinearOp : public ActivationOp {
 public:
  ExponentialLinearOp(OpArguments& arguments, double alpha, double scale, double rate)
      : ActivationOp(arguments), alpha_(alpha), scale_(scale), rate_(rate) {}

  Curve curve(const Tensors&) const override {
    const auto slope = [steepest = scale_ * alpha_ * rate_, scale = scale_,
                        rate = rate_](const torch::Tensor& x) {
      return torch::where(x > 0, torch::full_like(x, scale), torch::exp(x * rate) * steepest);
    };
    const double bend = scale_ * alpha_;
    Curve curve = curve_of(slope, {bend > 0 ? 1 : bend < 0 ? -1 : 0, 0}, {0});
    curve.rising = scale_ >= 0 && bend * rate_ >= 0;
    curve.error_1 = std::abs(bend);  // the 1 that exp(x) − 1 subtracts
    return curve;
  }

 protected:
  torch::Tensor apply(const torch::Tensor& x) const override {
    return torch::elu(x, alpha_, scale_, rate_);
  }

 private:
  double alpha_;
  double scale_;
  double rate_;
};

// max(0, min(1, αx + β)).
class HardSigmoidOp : public ActivationOp {
 public:
  explicit HardSigmoidOp(OpArguments& arguments)
      : ActivationOp(arguments),
        alpha_(arguments.number("alpha", 0.2f)),
        beta_(arguments.number("beta", 0.5)) {}

  Curve curve(const Tensors&) const override {
    const auto slope = [alpha = alpha_, beta = beta_](const torch::Tensor& x) {
      const torch::Tensor y = x * alpha + beta;
      return (y > 0).logical_and(y < 1).to(x.scalar_type()) * alpha;
    };
    std::vector<double> knots;
    if (alpha_ != 0) knots = {-beta_ / alpha_, (1 - beta_) / alpha_};
    std::sort(knots.begin(), knots.end());
    Curve curve = curve_of(slope, std::vector<int>(knots.size() + 1, 0), knots);
    curve.error_x = std::abs(alpha_);
    curve.error_1 = std::abs(beta_) + 1;
    return curve;
  }

 protected:
  torch::Tensor apply(const torch::Tensor& x) const override {
    return torch::clamp(x * alpha_ + beta_, 0, 1);
  }

 private:
  double alpha_;
  double beta_;
};

// x Φ(x); or its approximation x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³))).
class GeluOp : public ActivationOp {
 public:
  explicit GeluOp(OpArguments& arguments)
      : ActivationOp(arguments), approximate_(arguments.text("approximate", "none")) {
    if (approximate_ != "none" && approximate_ != "tanh") {
      fail(describe(node_), ": attribute 'approximate' is '", approximate_,
           "', expected 'none' or 'tanh'");
    }
  }

  // Convex between two points near ±√2, concave outside; least near −3/4.
  Curve curve(const Tensors&) const override {
    const bool exact = approximate_ == "none";
    const double knot = exact ? 1.4142135623730951 : 1.4185040087908284;
    Curve curve = curve_of(exact ? exact_slope : tanh_slope, {-1, 1, -1}, {-knot, knot});
    curve.turns = {exact ? -0.75179152469356446 : -0.75246142207101626};
    curve.error_x = 1;
    return curve;
  }

 protected:
  torch::Tensor apply(const torch::Tensor& x) const override {
    return torch::gelu(x, approximate_);
  }

 private:
  static torch::Tensor exact_slope(const torch::Tensor& x) {  // Φ(x) + x φ(x)
    return (torch::erf(x * 0.7071067811865476) + 1) / 2 +
           x * torch::exp(x.square() / -2) * 0.3989422804014327;
  }
  static torch::Tensor tanh_slope(const torch::Tensor& x) {
    constexpr double kScale = 0.7978845608028654, kCubic = 0.044715;
    const torch::Tensor t = torch::tanh((x + x.pow(3) * kCubic) * kScale);
    const torch::Tensor inner = (x.square() * (3 * kCubic) + 1) * kScale;
    return (t + 1) / 2 + x / 2 * (1 - t.square()) * inner;
  }

  std::string approximate_;
};

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
    if (upper.defined()) high = upper.to(torch::kDouble).item<double>();
    if (lower.defined()) low = std::min(high, lower.to(torch::kDouble).item<double>());
    for (const double knot : {low, high}) {
      if (std::isfinite(knot)) curve.knots.push_back(knot);
    }
    curve.bends.assign(curve.knots.size() + 1, 0);
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
};

// The identity, since we never train through a graph; the mask, where wanted, keeps everything.
class DropoutOp : public Op {
 public:
  explicit DropoutOp(OpArguments& arguments) : node_(arguments.node()) {
    if (arguments.opset() >= 12) {
      arguments.expect_inputs(1, 3);
      arguments.ignore("seed");
    } else {
      arguments.expect_inputs(1, 1);
      arguments.ignore("ratio");
    }
  }

  Tensors forward(const Tensors& inputs) const override {
    if (inputs.size() > 2 && inputs[2].defined()) {
      const torch::Tensor& training = inputs[2];
      if (training.numel() != 1 || training.scalar_type() != torch::kBool) {
        fail(describe(node_), ": training_mode must be one truth value, found ",
             training.scalar_type(), " of shape ", training.sizes());
      }
      if (training.item<bool>()) {
        fail(describe(node_), ": training_mode is true, expected a network for inference");
      }
    }
    Tensors outputs = {inputs[0]};
    if (node_.outputs.size() > 1) {
      outputs.push_back(torch::ones_like(inputs[0], torch::kBool));
    }
    return outputs;
  }
  BoundRule bound_rule(const std::vector<bool>& constant) const override {
    return affine_in_first(constant);
  }

 private:
  Node node_;
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

OpPointer make_leaky_relu(OpArguments& arguments) {
  return std::make_unique<LeakyReluOp>(arguments);
}

OpPointer make_prelu(OpArguments& arguments) { return std::make_unique<PReluOp>(arguments); }

OpPointer make_elu(OpArguments& arguments) {
  return std::make_unique<ExponentialLinearOp>(arguments, arguments.number("alpha", 1), 1, 1);
}

OpPointer make_selu(OpArguments& arguments) {
  const double alpha = arguments.number("alpha", 1.67326319217681884765625);
  const double gamma = arguments.number("gamma", 1.05070102214813232421875);
  return std::make_unique<ExponentialLinearOp>(arguments, alpha, gamma, 1);
}

OpPointer make_celu(OpArguments& arguments) {
  const double alpha = arguments.number("alpha", 1);
  if (alpha == 0) fail(describe(arguments.node()), ": attribute 'alpha' is 0, and divides");
  return std::make_unique<ExponentialLinearOp>(arguments, alpha, 1, 1 / alpha);
}

OpPointer make_sigmoid(OpArguments& arguments) {
  const auto sigmoid = [](const torch::Tensor& x) { return torch::sigmoid(x); };
  const auto slope = [](const torch::Tensor& x) { return torch::sigmoid(x) * torch::sigmoid(-x); };
  return floating_unary_op(arguments, sigmoid, make_rising_curve(sigmoid, slope, {1, -1}, {0}));
}

OpPointer make_hard_sigmoid(OpArguments& arguments) {
  return std::make_unique<HardSigmoidOp>(arguments);
}

// x · max(0, min(1, x/6 + 1/2)).
OpPointer make_hard_swish(OpArguments& arguments) {
  const auto hardswish = [](const torch::Tensor& x) { return torch::hardswish(x); };
  const auto slope = [](const torch::Tensor& x) {
    const torch::Tensor right = (x > 3).to(x.scalar_type());
    return torch::where(x.abs() < 3, (x * 2 + 3) / 6, right);
  };
  Curve curve = make_curve(hardswish, slope, {0, 1, 0}, {-3, 3});
  curve.turns = {-1.5};
  curve.error_x = 1;
  return floating_unary_op(arguments, hardswish, std::move(curve));
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

OpPointer make_gelu(OpArguments& arguments) { return std::make_unique<GeluOp>(arguments); }

OpPointer make_clip(OpArguments& arguments) { return std::make_unique<ClipOp>(arguments); }

OpPointer make_dropout(OpArguments& arguments) { return std::make_unique<DropoutOp>(arguments); }

}  // namespace fcp
