// Comparisons, the choice between two tensors, and the place of the largest element.
// Tested by tests/network/ops_arithmetic_test.cc.
#include <vector>

#include "fcp/base/error.h"
#include "fcp/network/ops/factories.h"
#include "fcp/network/ops/shared.h"

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
    return {torch::where(condition.to(pair[0].device()), pair[0].to(type), pair[1].to(type))};
  }
  BoundRule bound_rule(const std::vector<bool>& constant) const override {
    return constant[0] ? BoundRule::kAffine : BoundRule::kNone;
  }

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

// Of equal largest elements the first, or the last with select_last_index.
class ArgMaxOp : public Op {
 public:
  explicit ArgMaxOp(OpArguments& arguments)
      : node_(arguments.node()),
        axis_(arguments.integer("axis", 0)),
        keep_(arguments.integer("keepdims", 1) != 0),
        last_(arguments.opset() >= 12 && arguments.integer("select_last_index", 0) != 0) {
    arguments.expect_inputs(1, 1);
  }

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    const int64_t axis = normalize_axis(axis_, x.dim(), node_);
    if (x.size(axis) == 0) fail(describe(node_), ": axis ", axis_, " of ", x.sizes(), " is empty");
    if (x.scalar_type() == torch::kBool) fail(describe(node_), ": input is Bool, expected numbers");
    if (!last_) return {torch::argmax(x, axis, keep_)};
    return {x.size(axis) - 1 - torch::argmax(torch::flip(x, {axis}), axis, keep_)};
  }
  bool differentiable() const override { return false; }

 private:
  Node node_;
  int64_t axis_;
  bool keep_;
  bool last_;
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

OpPointer make_argmax(OpArguments& arguments) { return std::make_unique<ArgMaxOp>(arguments); }

}  // namespace fcp
