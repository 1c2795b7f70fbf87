// By size: ArgMax and ArgMin, TopK, and Hardmax, which is 1 at the first largest element.
// Of equal elements the one of the lowest index comes first.
//
// TopK has intervals: no k-th largest number falls when an element rises. Its indices have none.
// Cost: TopK sorts, n log n along the axis; the others are linear.
// Reference: ONNX operator specification. Tested by tests/nn/ops/index_test.cc.
#include <tuple>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/shared.h"

namespace fcp {
namespace {

// Of equal extreme elements the first, or the last with select_last_index.
class ArgExtremeOp : public Op {
 public:
  ArgExtremeOp(OpArguments& arguments, bool largest)
      : node_(arguments.node()),
        axis_(arguments.integer("axis", 0)),
        keep_(arguments.integer("keepdims", 1) != 0),
        last_(arguments.opset() >= 12 && arguments.integer("select_last_index", 0) != 0),
        largest_(largest) {
    arguments.expect_inputs(1, 1);
  }

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    const int64_t axis = normalize_axis(axis_, x.dim(), node_);
    if (x.size(axis) == 0) fail(describe(node_), ": axis ", axis_, " of ", x.sizes(), " is empty");
    if (x.scalar_type() == torch::kBool) fail(describe(node_), ": input is Bool, expected numbers");
    if (!last_) return {of(x, axis)};
    return {x.size(axis) - 1 - of(torch::flip(x, {axis}), axis)};
  }
  bool differentiable() const override { return false; }

 private:
  torch::Tensor of(const torch::Tensor& x, int64_t axis) const {
    return largest_ ? torch::argmax(x, axis, keep_) : torch::argmin(x, axis, keep_);
  }

  Node node_;
  int64_t axis_;
  bool keep_;
  bool last_;
  bool largest_;
};

// The number k is an attribute before operator set 10, an input since.
class TopKOp : public Op {
 public:
  explicit TopKOp(OpArguments& arguments)
      : node_(arguments.node()), axis_(arguments.integer("axis", -1)) {
    if (arguments.opset() >= 10) {
      arguments.expect_inputs(2, 2);
    } else {
      arguments.expect_inputs(1, 1);
      k_ = arguments.integer("k", 0);
    }
    if (arguments.opset() >= 11) {
      largest_ = arguments.integer("largest", 1) != 0;
      arguments.ignore("sorted");  // sorted is one of the orders that "not sorted" allows
    }
  }

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    const int64_t axis = normalize_axis(axis_, x.dim(), node_);
    int64_t k = k_;
    if (inputs.size() > 1) {
      const std::vector<int64_t> given = to_integers(inputs[1], node_, "K");
      if (given.size() != 1)
        fail(describe(node_), ": K has ", given.size(), " numbers, expected 1");
      k = given[0];
    }
    if (k < 0 || k > x.size(axis)) {
      fail(describe(node_), ": asks for ", k, " of ", x.size(axis), " elements");
    }
    const auto [values, places] = torch::sort(x, /*stable=*/true, axis, largest_);
    return {values.narrow(axis, 0, k), places.narrow(axis, 0, k)};
  }

  BoundRule bound_rule(const std::vector<bool>& constant) const override {
    const bool places = node_.outputs.size() > 1 && !node_.outputs[1].empty();
    return !places && affine_in_first(constant) == BoundRule::kAffine ? BoundRule::kInterval
                                                                      : BoundRule::kNone;
  }

 private:
  Node node_;
  int64_t axis_;
  int64_t k_ = 0;
  bool largest_ = true;
};

// Along one axis from operator set 13 on; before, all axes from `axis` on count as one.
class HardmaxOp : public Op {
 public:
  explicit HardmaxOp(OpArguments& arguments)
      : node_(arguments.node()),
        flattens_(arguments.opset() < 13),
        axis_(arguments.integer("axis", flattens_ ? 1 : -1)) {
    arguments.expect_inputs(1, 1);
  }

  Tensors forward(const Tensors& inputs) const override {
    expect_floating(inputs[0], node_, "input");
    const int64_t axis = normalize_axis(axis_, inputs[0].dim(), node_);
    const torch::Tensor x = flattens_ ? inputs[0].flatten(axis, -1) : inputs[0];
    if (x.size(axis) == 0) return {torch::zeros_like(inputs[0])};
    const torch::Tensor place = torch::argmax(x, axis, /*keepdim=*/true);
    return {torch::zeros_like(x).scatter(axis, place, 1).reshape(inputs[0].sizes())};
  }
  bool differentiable() const override { return false; }

 private:
  Node node_;
  bool flattens_;
  int64_t axis_;
};

}  // namespace

OpPointer make_argmax(OpArguments& arguments) {
  return std::make_unique<ArgExtremeOp>(arguments, /*largest=*/true);
}

OpPointer make_argmin(OpArguments& arguments) {
  return std::make_unique<ArgExtremeOp>(arguments, /*largest=*/false);
}

OpPointer make_topk(OpArguments& arguments) { return std::make_unique<TopKOp>(arguments); }
OpPointer make_hardmax(OpArguments& arguments) { return std::make_unique<HardmaxOp>(arguments); }

}  // namespace fcp
