// Activations made of straight lines, after the ONNX operator definitions; the formula stands
// beside each. Tested by tests/nn/ops/activations_test.cc.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/shared.h"
#include "fcp/nn/runtime/device_waits.h"

namespace fcp {
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
