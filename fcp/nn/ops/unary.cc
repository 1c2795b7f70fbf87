// Functions of one number, and changes of type, after the ONNX operator definitions.
// Tested by tests/nn/ops/activations_test.cc.

#include <string>
#include <utility>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/nn/kernels/cpu/row_functions.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/shared.h"
#include "fcp/nn/ops/types.h"
#include "fcp/nn/runtime/element_types.h"

namespace fcp {
namespace {

// An operator of one input that integers may enter too, but not truth values.
OpPointer numeric_unary_op(OpArguments& arguments, UnaryFunction function, Curve curve) {
  arguments.expect_inputs(1, 1);
  return unary_op(
      [where = describe(arguments.node()), function = std::move(function)](const torch::Tensor& x) {
        if (x.scalar_type() == torch::kBool) fail(where, ": input is Bool, expected numbers");
        return function(x);
      },
      std::move(curve));
}

class CastOp : public Op {
 public:
  explicit CastOp(torch::ScalarType target) : target_(target) {}
  Tensors forward(const Tensors& inputs) const override { return {inputs[0].to(target_)}; }
  bool differentiable() const override { return torch::isFloatingType(target_); }

  // Bounds stay in the precision of their walk; what the cast rounds is added to them, in units of
  // single precision.
  BoundRule bound_rule(const std::vector<bool>&) const override {
    return torch::isFloatingType(target_) ? BoundRule::kAffine : BoundRule::kNone;
  }
  std::vector<Range> interval(const std::vector<Range>& inputs, double) const override {
    return inputs;
  }
  torch::Tensor pull_back(const torch::Tensor& coefficients, const Tensors&) const override {
    return coefficients;
  }
  MissingRule missing_rule() const override {
    return torch::isFloatingType(target_) ? MissingRule::kMoves : MissingRule::kSpreads;
  }
  double roundings(const Tensors&) const override {
    return target_ == torch::kHalf ? 1 << 13 : target_ == torch::kBFloat16 ? 1 << 16 : 1;
  }

 private:
  torch::ScalarType target_;
};

class IdentityOp : public Op {
 public:
  Tensors forward(const Tensors& inputs) const override { return inputs; }
  BoundRule bound_rule(const std::vector<bool>&) const override { return BoundRule::kAffine; }
  MissingRule missing_rule() const override { return MissingRule::kMoves; }
};

// To a type that libtorch lacks (types.h).
class NarrowCastOp : public Op {
 public:
  explicit NarrowCastOp(OpArguments& arguments)
      : type_(arguments.integer("to", 0)),
        saturates_(arguments.opset() < 19 || arguments.integer("saturate", 1) != 0) {
    if (arguments.opset() >= 24 && arguments.text("round_mode", "up") != "up") {
      fail(describe(arguments.node()), ": attribute 'round_mode' is '",
           arguments.text("round_mode", ""), "', expected 'up'");
    }
  }
  Tensors forward(const Tensors& inputs) const override {
    return {to_narrow(inputs[0], type_, saturates_)};
  }
  bool differentiable() const override { return false; }

 private:
  int64_t type_;
  bool saturates_;
};

class CastLikeOp : public Op {
 public:
  explicit CastLikeOp(OpArguments& arguments) {
    arguments.expect_inputs(2, 2);
    if (arguments.opset() >= 19) arguments.ignore("saturate");  // concerns 8-bit floats only
    if (arguments.opset() >= 24) arguments.ignore("round_mode");
  }
  Tensors forward(const Tensors& inputs) const override {
    return {inputs[0].to(inputs[1].scalar_type())};
  }
};

}  // namespace

OpPointer make_erf(OpArguments& arguments) {
  const auto slope = [](const torch::Tensor& x) {
    return torch::exp(-x.square()) * 1.1283791670955126;  // 2/√π
  };
  return alike_unary_op(arguments, erf_of, make_rising_curve(erf_of, slope, {1, -1}, {0}));
}

OpPointer make_exp(OpArguments& arguments) {
  const auto exp = [](const torch::Tensor& x) { return torch::exp(x); };
  return floating_unary_op(arguments, exp, make_rising_curve(exp, exp, {1}));
}

OpPointer make_log(OpArguments& arguments) {
  const auto log = [](const torch::Tensor& x) { return torch::log(x); };
  const auto slope = [](const torch::Tensor& x) { return torch::reciprocal(x); };
  return floating_unary_op(arguments, log, make_rising_curve(log, slope, {-1}));
}

OpPointer make_sqrt(OpArguments& arguments) {
  const auto sqrt = [](const torch::Tensor& x) { return torch::sqrt(x); };
  const auto slope = [](const torch::Tensor& x) { return torch::rsqrt(x) / 2; };
  return floating_unary_op(arguments, sqrt, make_rising_curve(sqrt, slope, {-1}));
}

OpPointer make_reciprocal(OpArguments& arguments) {
  const auto reciprocal = [](const torch::Tensor& x) { return torch::reciprocal(x); };
  const auto slope = [](const torch::Tensor& x) { return -torch::reciprocal(x.square()); };
  Curve curve = make_curve(reciprocal, slope, {-1, 1}, {0});
  curve.pole = 0;
  return floating_unary_op(arguments, reciprocal, std::move(curve));
}

OpPointer make_abs(OpArguments& arguments) {
  const auto abs = [](const torch::Tensor& x) { return torch::abs(x); };
  Curve curve = make_curve(abs, [](const torch::Tensor& x) { return torch::sign(x); }, {0, 0}, {0});
  curve.hinge = true;
  curve.roundings = 0;
  return numeric_unary_op(arguments, abs, std::move(curve));
}

OpPointer make_neg(OpArguments& arguments) {
  const auto neg = [](const torch::Tensor& x) { return torch::neg(x); };
  Curve curve =
      make_curve(neg, [](const torch::Tensor& x) { return torch::full_like(x, -1); }, {0});
  curve.roundings = 0;
  return numeric_unary_op(arguments, neg, std::move(curve));
}

OpPointer make_identity(OpArguments& arguments) {
  arguments.expect_inputs(1, 1);
  return std::make_unique<IdentityOp>();
}

OpPointer make_cast(OpArguments& arguments) {
  arguments.expect_inputs(1, 1);
  if (!arguments.has("to")) fail(describe(arguments.node()), ": attribute 'to' is missing");
  if (is_narrow(arguments.integer("to", 0))) return std::make_unique<NarrowCastOp>(arguments);
  if (arguments.opset() >= 19) arguments.ignore("saturate");  // concerns 8-bit floats only
  if (arguments.opset() >= 24) arguments.ignore("round_mode");
  return std::make_unique<CastOp>(
      scalar_type(type_of_number(arguments.integer("to", 0), arguments.node())));
}

// The type of the second input, whose numbers do not matter.
OpPointer make_cast_like(OpArguments& arguments) { return std::make_unique<CastLikeOp>(arguments); }

// Functions of one number that jump: Ceil, Floor, Round (halves to the even number), Sign, IsNaN,
// IsInf, ThresholdedRelu and Shrink. Those that never fall have intervals; none has linear bounds.
// Reference: ONNX operator specification. Tested by tests/nn/ops/jumps_test.cc.

namespace {

class JumpOp : public Op {
 public:
  JumpOp(OpArguments& arguments, UnaryFunction function, bool rising, bool differentiable,
         bool floating = true)
      : node_(arguments.node()),
        function_(std::move(function)),
        rising_(rising),
        differentiable_(differentiable),
        floating_(floating) {
    arguments.expect_inputs(1, 1);
  }

  Tensors forward(const Tensors& inputs) const override {
    const torch::ScalarType type = inputs[0].scalar_type();
    if (type == torch::kBool || (floating_ && !torch::isFloatingType(type))) {
      fail(describe(node_), ": input is ", type, ", expected ",
           floating_ ? "floating-point numbers" : "numbers");
    }
    return {function_(inputs[0])};
  }
  bool differentiable() const override { return differentiable_; }
  BoundRule bound_rule(const std::vector<bool>&) const override {
    return rising_ ? BoundRule::kInterval : BoundRule::kNone;
  }
  // Comparisons with what is not a number are false.
  std::vector<Range> interval(const std::vector<Range>& inputs, double unit) const override {
    return Op::interval({open_ends(inputs[0])}, unit);
  }

 private:
  Node node_;
  UnaryFunction function_;
  bool rising_;
  bool differentiable_;
  bool floating_;
};

class IsNanOp : public JumpOp {
 public:
  explicit IsNanOp(OpArguments& arguments)
      : JumpOp(
            arguments, [](const torch::Tensor& x) { return torch::isnan(x); }, false, false) {}
  MissingRule missing_rule() const override { return MissingRule::kTests; }
};

OpPointer step_op(OpArguments& arguments, UnaryFunction function, bool floating = true) {
  return std::make_unique<JumpOp>(arguments, std::move(function), /*rising=*/true,
                                  /*differentiable=*/false, floating);
}

}  // namespace

OpPointer make_ceil(OpArguments& arguments) {
  return step_op(arguments, [](const torch::Tensor& x) { return torch::ceil(x); });
}

OpPointer make_floor(OpArguments& arguments) {
  return step_op(arguments, [](const torch::Tensor& x) { return torch::floor(x); });
}

OpPointer make_round(OpArguments& arguments) {
  return step_op(arguments, [](const torch::Tensor& x) { return torch::round(x); });
}

OpPointer make_sign(OpArguments& arguments) {
  return step_op(
      arguments, [](const torch::Tensor& x) { return torch::sign(x); }, /*floating=*/false);
}

OpPointer make_is_nan(OpArguments& arguments) { return std::make_unique<IsNanOp>(arguments); }

OpPointer make_is_inf(OpArguments& arguments) {
  const bool negative = arguments.integer("detect_negative", 1) != 0;
  const bool positive = arguments.integer("detect_positive", 1) != 0;
  const auto function = [=](const torch::Tensor& x) {
    const torch::Tensor infinite = torch::isinf(x);
    if (negative && positive) return infinite;
    if (!negative && !positive) return torch::zeros_like(infinite);
    return infinite.logical_and(negative ? x < 0 : x > 0);
  };
  return std::make_unique<JumpOp>(arguments, function, false, false);
}

// x where x > α, else 0: never falls where α ≥ 0.
OpPointer make_thresholded_relu(OpArguments& arguments) {
  const double alpha = arguments.number("alpha", 1);
  const auto function = [alpha](const torch::Tensor& x) {
    return torch::where(x > alpha, x, torch::zeros_like(x));
  };
  return std::make_unique<JumpOp>(arguments, function, alpha >= 0, true);
}

// x + bias where x < −λ, x − bias where x > λ, else 0: never falls where bias ≤ λ.
OpPointer make_shrink(OpArguments& arguments) {
  const double bias = arguments.number("bias", 0), lambda = arguments.number("lambd", 0.5);
  const auto function = [=](const torch::Tensor& x) {
    const torch::Tensor zero = torch::zeros_like(x);
    return torch::where(x < -lambda, x + bias, torch::where(x > lambda, x - bias, zero));
  };
  return std::make_unique<JumpOp>(arguments, function, bias <= lambda && lambda >= 0, true,
                                  /*floating=*/false);
}

}  // namespace fcp
