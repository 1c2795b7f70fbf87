// Reductions over some axes, or over all where none are given: ReduceMean, ReduceSum, ReduceMax and
// ReduceMin; norms.cc has those that bend. The axes are an attribute in older operator sets and an
// input later (ReduceSum from 13, the others from 18). Cost: linear in the input.
// Reference: ONNX operator specification. Tested by tests/nn/ops/pooling_test.cc.
#include "fcp/nn/ops/reduce.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/nn/kernels/cpu/row_product.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/shared.h"

namespace fcp {
namespace {

enum class Reduction { kMean, kSum, kMax, kMin };

class Reduce : public Op {
 public:
  Reduce(OpArguments& arguments, Reduction reduction)
      : node_(arguments.node()),
        reduction_(reduction),
        axes_(arguments, reduction == Reduction::kSum ? 13 : 18) {}

  Tensors forward(const Tensors& inputs) const override {
    const std::vector<int64_t> axes = axes_.of(inputs);
    return {axes.empty() ? inputs[0] : reduce(inputs[0], axes)};
  }

  BoundRule bound_rule(const std::vector<bool>& constant) const override {
    if (affine_in_first(constant) == BoundRule::kNone) return BoundRule::kNone;
    if (reduction_ == Reduction::kMax) return BoundRule::kLargest;
    return reduction_ == Reduction::kMin ? BoundRule::kSmallest : BoundRule::kAffine;
  }
  double roundings(const Tensors& inputs) const override {
    const std::vector<int64_t> axes = axes_.of(inputs);
    if (axes.empty()) return 0;
    double terms = 1;
    for (const int64_t axis : axes) {
      terms *= static_cast<double>(inputs[0].size(axis));
    }
    return terms + 2;
  }
  torch::Tensor candidates(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    const std::vector<int64_t> axes = axes_.of(inputs);
    std::vector<int64_t> order, shape;
    if (axes.empty()) return x.unsqueeze(-1);
    for (int64_t i = 0; i < x.dim(); ++i) {
      const bool reduced = std::binary_search(axes.begin(), axes.end(), i);
      if (!reduced) order.push_back(i);
      if (!reduced || axes_.keep_dimensions()) shape.push_back(reduced ? 1 : x.size(i));
    }
    order.insert(order.end(), axes.begin(), axes.end());
    shape.push_back(-1);
    return x.permute(order).reshape(shape);
  }

  double flops(const Tensors& inputs, const Tensors&) const override {
    return static_cast<double>(inputs[0].numel());
  }

 private:
  torch::Tensor reduce(const torch::Tensor& x, const std::vector<int64_t>& axes) const {
    int64_t count = 1;
    for (const int64_t axis : axes) count *= x.size(axis);
    if (count == 0 && reduction_ != Reduction::kSum) {
      fail(describe(node_), ": data has shape ", shape_text(x.sizes()),
           ", expected elements along the reduced axes");
    }
    switch (reduction_) {
      case Reduction::kMean: {
        if (x.is_floating_point()) {
          return sum_along(x, axes, axes_.keep_dimensions()) / static_cast<double>(count);
        }
        const torch::Tensor sum = x.sum(axes, axes_.keep_dimensions(), x.scalar_type());
        return torch::div(sum, count, "trunc");
      }
      case Reduction::kSum:
        if (x.is_floating_point()) return sum_along(x, axes, axes_.keep_dimensions());
        return x.sum(axes, axes_.keep_dimensions(), x.scalar_type());
      case Reduction::kMax:
        return x.amax(axes, axes_.keep_dimensions());
      case Reduction::kMin:
        return x.amin(axes, axes_.keep_dimensions());
    }
    return {};
  }

  Node node_;
  Reduction reduction_;
  ReducedAxes axes_;
};

}  // namespace

OpPointer make_reduce_mean(OpArguments& arguments) {
  return std::make_unique<Reduce>(arguments, Reduction::kMean);
}

OpPointer make_reduce_sum(OpArguments& arguments) {
  return std::make_unique<Reduce>(arguments, Reduction::kSum);
}

OpPointer make_reduce_max(OpArguments& arguments) {
  return std::make_unique<Reduce>(arguments, Reduction::kMax);
}

OpPointer make_reduce_min(OpArguments& arguments) {
  return std::make_unique<Reduce>(arguments, Reduction::kMin);
}

ReducedAxes::ReducedAxes(OpArguments& arguments, int64_t inputs_since)
    : node_(arguments.node()),
      are_input_(arguments.opset() >= inputs_since),
      keep_(arguments.integer("keepdims", 1) != 0) {
  if (are_input_) {
    arguments.expect_inputs(1, 2);
    empty_means_none_ = arguments.integer("noop_with_empty_axes", 0) != 0;
  } else {
    arguments.expect_inputs(1, 1);
    axes_ = arguments.integers("axes");
  }
}

std::vector<int64_t> ReducedAxes::of(const Tensors& inputs) const {
  const torch::Tensor& x = inputs[0];
  if (!x.defined()) fail(describe(node_), ": data is absent");
  const bool given = are_input_ && inputs.size() > 1 && inputs[1].defined();
  std::vector<int64_t> axes = given ? to_integers(inputs[1], node_, "axes") : axes_;
  if (axes.empty()) {
    if (empty_means_none_) return {};
    axes.resize(static_cast<size_t>(x.dim()));
    std::iota(axes.begin(), axes.end(), 0);
  }
  for (int64_t& axis : axes) axis = normalize_axis(axis, x.dim(), node_);
  std::sort(axes.begin(), axes.end());
  const auto twice = std::adjacent_find(axes.begin(), axes.end());
  if (twice != axes.end()) fail(describe(node_), ": axis ", *twice, " is named twice");
  return axes;
}

}  // namespace fcp
