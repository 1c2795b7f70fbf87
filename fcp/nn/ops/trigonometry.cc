// Sine and cosine, their relatives and inverses. Intervals of sine and cosine: the ends' values,
// and 1 or −1 where the range holds a crest or a trough. Those that bend once are curves.
// Reference: ONNX operator specification. Tested by tests/nn/ops/jumps_test.cc.
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/shared.h"

namespace fcp {
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

}  // namespace fcp
