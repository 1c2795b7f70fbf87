// Comparisons, truth values, and the choice between two tensors.
// Tested by tests/nn/ops/arithmetic_test.cc.

#include <string>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/shared.h"
#include "fcp/nn/runtime/device_waits.h"

namespace fcp {
namespace {

// condition ? x : y; all three broadcast. Gradients flow to x and y.
class WhereOp : public Op {
 public:
  explicit WhereOp(OpArguments& arguments) : node_(arguments.node()) {
    arguments.expect_inputs(3, 3);
  }

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& condition = inputs[0];
    if (condition.scalar_type() != torch::kBool) {
      fail(describe(node_), ": condition is ", condition.scalar_type(), ", expected Bool");
    }
    const Tensors pair = broadcast_inputs({inputs[1], inputs[2]}, node_);
    broadcast_shape(condition.sizes(), broadcast_shape(pair[0].sizes(), pair[1].sizes(), node_),
                    node_);
    const torch::ScalarType type = torch::result_type(pair[0], pair[1]);
    return {
        torch::where(placed_on(condition, pair[0].device()), pair[0].to(type), pair[1].to(type))};
  }
  BoundRule bound_rule(const std::vector<bool>& constant) const override {
    return constant[0] ? BoundRule::kAffine : BoundRule::kNone;
  }
  MissingRule missing_rule() const override { return MissingRule::kSelects; }

 private:
  Node node_;
};

class CompareOp : public Op {
 public:
  using Function = torch::Tensor (*)(const torch::Tensor&, const torch::Tensor&);

  CompareOp(OpArguments& arguments, Function function)
      : node_(arguments.node()), function_(function) {
    arguments.expect_inputs(2, 2);
  }

  Tensors forward(const Tensors& inputs) const override {
    const Tensors pair = broadcast_inputs(inputs, node_);
    return {function_(pair[0], pair[1])};
  }
  bool differentiable() const override { return false; }

 private:
  Node node_;
  Function function_;
};

// Truth values, of one input or two.
class TruthOp : public Op {
 public:
  using Function = torch::Tensor (*)(const Tensors&);

  TruthOp(OpArguments& arguments, size_t inputs, Function function)
      : node_(arguments.node()), function_(function) {
    arguments.expect_inputs(inputs, inputs);
  }
  Tensors forward(const Tensors& inputs) const override {
    for (const torch::Tensor& input : inputs) {
      if (input.scalar_type() != torch::kBool) {
        fail(describe(node_), ": input is ", input.scalar_type(), ", expected Bool");
      }
    }
    return {function_(broadcast_inputs(inputs, node_))};
  }
  bool differentiable() const override { return false; }

 private:
  Node node_;
  Function function_;
};

class NotOp : public TruthOp {
 public:
  explicit NotOp(OpArguments& arguments)
      : TruthOp(arguments, 1, [](const Tensors& x) { return x[0].logical_not(); }) {}
  MissingRule missing_rule() const override { return MissingRule::kNegates; }
};

}  // namespace

OpPointer make_where(OpArguments& arguments) { return std::make_unique<WhereOp>(arguments); }

OpPointer make_equal(OpArguments& arguments) {
  return std::make_unique<CompareOp>(
      arguments, [](const torch::Tensor& a, const torch::Tensor& b) { return a == b; });
}

OpPointer make_greater(OpArguments& arguments) {
  return std::make_unique<CompareOp>(
      arguments, [](const torch::Tensor& a, const torch::Tensor& b) { return a > b; });
}

OpPointer make_less(OpArguments& arguments) {
  return std::make_unique<CompareOp>(
      arguments, [](const torch::Tensor& a, const torch::Tensor& b) { return a < b; });
}

OpPointer make_less_or_equal(OpArguments& arguments) {
  return std::make_unique<CompareOp>(
      arguments, [](const torch::Tensor& a, const torch::Tensor& b) { return a <= b; });
}

OpPointer make_greater_or_equal(OpArguments& arguments) {
  return std::make_unique<CompareOp>(
      arguments, [](const torch::Tensor& a, const torch::Tensor& b) { return a >= b; });
}

OpPointer make_not(OpArguments& arguments) { return std::make_unique<NotOp>(arguments); }

OpPointer make_and(OpArguments& arguments) {
  return std::make_unique<TruthOp>(arguments, 2,
                                   [](const Tensors& x) { return x[0].logical_and(x[1]); });
}

OpPointer make_or(OpArguments& arguments) {
  return std::make_unique<TruthOp>(arguments, 2,
                                   [](const Tensors& x) { return x[0].logical_or(x[1]); });
}

OpPointer make_xor(OpArguments& arguments) {
  return std::make_unique<TruthOp>(arguments, 2,
                                   [](const Tensors& x) { return x[0].logical_xor(x[1]); });
}

// BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot and BitShift of integers. No gradient, no bounds.
// BitShift is defined for unsigned numbers alone; those of 16 and 32 bits are held in int32 and
// int64 (types.h), so that its result is cut to the bits of the type.
// Cost: linear. Reference: ONNX operator specification, Bitwise… 18, BitShift 11.
// Tested by tests/nn/ops/arithmetic_test.cc.

namespace {

class BitsOp : public Op {
 public:
  using Function = torch::Tensor (*)(const Tensors&);
  BitsOp(OpArguments& arguments, size_t inputs, Function function)
      : node_(arguments.node()), function_(function) {
    arguments.expect_inputs(inputs, inputs);
  }
  Tensors forward(const Tensors& inputs) const override {
    for (const torch::Tensor& input : inputs) {
      if (!torch::isIntegralType(input.scalar_type(), /*includeBool=*/false)) {
        fail(describe(node_), ": input is ", input.scalar_type(), ", expected integers");
      }
    }
    return {function_(broadcast_inputs(inputs, node_))};
  }
  bool differentiable() const override { return false; }

 private:
  Node node_;
  Function function_;
};

class ShiftOp : public Op {
 public:
  explicit ShiftOp(OpArguments& arguments) : node_(arguments.node()) {
    arguments.expect_inputs(2, 2);
    const std::string direction = arguments.text("direction", "");
    if (direction != "LEFT" && direction != "RIGHT") {
      fail(describe(node_), ": attribute 'direction' is '", direction,
           "', expected 'LEFT' or 'RIGHT'");
    }
    left_ = direction == "LEFT";
  }
  Tensors forward(const Tensors& inputs) const override {
    const Tensors pair = broadcast_inputs(inputs, node_);
    const torch::ScalarType type = pair[0].scalar_type();
    if (type != torch::kByte && type != torch::kInt && type != torch::kLong) {
      fail(describe(node_), ": input is ", type, ", expected uint8, uint16 or uint32");
    }
    const int64_t bits = type == torch::kByte ? 8 : type == torch::kInt ? 16 : 32;
    const int64_t mask = (int64_t{1} << bits) - 1;
    const torch::Tensor x = pair[0].to(torch::kLong).bitwise_and(mask);
    const torch::Tensor by = pair[1].to(torch::kLong);
    const torch::Tensor near = by.clamp(0, bits);  // beyond, nothing of the number is left
    const torch::Tensor y =
        left_ ? x.bitwise_left_shift(near).bitwise_and(mask) : x.bitwise_right_shift(near);
    return {y.masked_fill(by < 0, 0).to(type)};
  }
  bool differentiable() const override { return false; }

 private:
  Node node_;
  bool left_;
};

}  // namespace

OpPointer make_bitwise_and(OpArguments& arguments) {
  return std::make_unique<BitsOp>(arguments, 2,
                                  [](const Tensors& x) { return x[0].bitwise_and(x[1]); });
}

OpPointer make_bitwise_or(OpArguments& arguments) {
  return std::make_unique<BitsOp>(arguments, 2,
                                  [](const Tensors& x) { return x[0].bitwise_or(x[1]); });
}

OpPointer make_bitwise_xor(OpArguments& arguments) {
  return std::make_unique<BitsOp>(arguments, 2,
                                  [](const Tensors& x) { return x[0].bitwise_xor(x[1]); });
}

OpPointer make_bitwise_not(OpArguments& arguments) {
  return std::make_unique<BitsOp>(arguments, 1,
                                  [](const Tensors& x) { return x[0].bitwise_not(); });
}

OpPointer make_bit_shift(OpArguments& arguments) { return std::make_unique<ShiftOp>(arguments); }

}  // namespace fcp
