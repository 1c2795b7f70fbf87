// Comparisons, truth values, and the choice between two tensors.
// Tested by tests/nn/ops/arithmetic_test.cc.
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

}  // namespace fcp
