// Functions of one number that jump: Ceil, Floor, Round (halves to the even number), Sign, IsNaN,
// IsInf, ThresholdedRelu and Shrink. Those that never fall have intervals; none has linear bounds.
// Reference: ONNX operator specification. Tested by tests/nn/ops/jumps_test.cc.
#include <string>
#include <utility>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/open_ends.h"
#include "fcp/nn/ops/shared.h"

namespace fcp {
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
