// Tensors made from few numbers: Range, EyeLike, OneHot, and Size and NonZero, which count and
// find. Cost: linear in the output. Reference: ONNX operator specification. Tested by
// tests/nn/ops/index_test.cc.
#include <cmath>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/shared.h"
#include "fcp/nn/ops/types.h"
#include "fcp/nn/runtime/element_types.h"

namespace fcp {
namespace {

// start, start + delta, … below limit (above it where delta < 0).
class RangeOp : public Op {
 public:
  explicit RangeOp(OpArguments& arguments) : node_(arguments.node()) {
    arguments.expect_inputs(3, 3);
  }
  Tensors forward(const Tensors& inputs) const override {
    for (const torch::Tensor& input : inputs) {
      expect_type_of(inputs[0], input, node_, "an input");
      if (input.numel() != 1) {
        fail(describe(node_), ": an input has shape ", shape_text(input.sizes()),
             ", expected one number");
      }
    }
    if (inputs[0].is_floating_point()) return {of<double>(inputs, torch::kDouble)};
    return {of<int64_t>(inputs, torch::kLong)};
  }
  bool differentiable() const override { return false; }

 private:
  template <typename Number>
  torch::Tensor of(const Tensors& inputs, torch::ScalarType type) const {
    const auto at = [&](size_t i) {
      return *inputs[i].to(torch::kCPU, type).template data_ptr<Number>();
    };
    const Number start = at(0), limit = at(1), delta = at(2);
    if (delta == 0) fail(describe(node_), ": delta is 0");
    const double steps = std::ceil((static_cast<double>(limit) - static_cast<double>(start)) /
                                   static_cast<double>(delta));
    if (!(steps < static_cast<double>(kMaxElements))) {
      fail(describe(node_), ": asks for a tensor of more than ", kMaxElements, " elements");
    }
    const int64_t count = steps > 0 ? static_cast<int64_t>(steps) : 0;
    return (torch::arange(count, type) * delta + start).to(inputs[0].scalar_type());
  }

  Node node_;
};

// Ones on a diagonal of a matrix of the input's shape.
class EyeLikeOp : public Op {
 public:
  explicit EyeLikeOp(OpArguments& arguments)
      : node_(arguments.node()), offset_(arguments.integer("k", 0)) {
    arguments.expect_inputs(1, 1);
    if (arguments.has("dtype"))
      type_ = scalar_type(type_of_number(arguments.integer("dtype", 1), node_));
  }
  Tensors forward(const Tensors& inputs) const override {
    expect_rank(inputs[0], 2, 2, node_, "input");
    const auto type = type_.value_or(inputs[0].scalar_type());
    const int64_t rows = inputs[0].size(0), columns = inputs[0].size(1);
    checked_elements({rows, columns}, node_);
    const torch::Tensor row = torch::arange(rows).unsqueeze(1), column = torch::arange(columns);
    return {(column - row == offset_).to(inputs[0].device(), type)};
  }
  bool differentiable() const override { return false; }
  BoundRule bound_rule(const std::vector<bool>&) const override { return BoundRule::kShape; }

 private:
  Node node_;
  int64_t offset_;
  std::optional<torch::ScalarType> type_;
};

// A new axis of length depth: values[1] at the index, values[0] elsewhere and for an index outside
// [−depth, depth).
class OneHotOp : public Op {
 public:
  explicit OneHotOp(OpArguments& arguments)
      : node_(arguments.node()), axis_(arguments.integer("axis", -1)) {
    arguments.expect_inputs(3, 3);
  }
  Tensors forward(const Tensors& inputs) const override {
    if (inputs[1].numel() != 1) {
      fail(describe(node_), ": depth has shape ", shape_text(inputs[1].sizes()),
           ", expected one number");
    }
    expect_vector(inputs[2], 2, node_, "values");
    const auto depth = inputs[1].to(torch::kCPU, torch::kDouble).item<double>();
    if (!(depth >= 1 && depth < static_cast<double>(kMaxElements))) {
      fail(describe(node_), ": depth is ", depth, ", expected at least 1");
    }
    const auto count = static_cast<int64_t>(depth);
    std::vector<int64_t> shape = inputs[0].sizes().vec();
    const int64_t axis = normalize_axis(axis_, inputs[0].dim() + 1, node_);
    shape.insert(shape.begin() + axis, count);
    checked_elements(shape, node_);
    const torch::Tensor indices = inputs[0].to(torch::kDouble);
    const torch::Tensor place = torch::where(indices < 0, indices + depth, indices).unsqueeze(axis);
    std::vector<int64_t> line(shape.size(), 1);
    line[static_cast<size_t>(axis)] = count;
    const torch::Tensor hot = place == torch::arange(count, indices.options()).reshape(line);
    const torch::Tensor values = inputs[2].to(indices.device());
    return {torch::where(hot, values[1], values[0])};
  }
  bool differentiable() const override { return false; }

 private:
  Node node_;
  int64_t axis_;
};

class SizeOp : public Op {
 public:
  explicit SizeOp(OpArguments& arguments) { arguments.expect_inputs(1, 1); }
  Tensors forward(const Tensors& inputs) const override {
    return {torch::tensor(inputs[0].numel(), torch::kLong)};
  }
  bool differentiable() const override { return false; }
  BoundRule bound_rule(const std::vector<bool>&) const override { return BoundRule::kShape; }
};

// The places of what is not 0, one column each, in row-major order.
class NonZeroOp : public Op {
 public:
  explicit NonZeroOp(OpArguments& arguments) { arguments.expect_inputs(1, 1); }
  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor x = inputs[0].dim() == 0 ? inputs[0].reshape({1}) : inputs[0];
    return {x.nonzero().t().contiguous()};
  }
  bool differentiable() const override { return false; }
};

}  // namespace

OpPointer make_range(OpArguments& arguments) { return std::make_unique<RangeOp>(arguments); }
OpPointer make_eye_like(OpArguments& arguments) { return std::make_unique<EyeLikeOp>(arguments); }
OpPointer make_one_hot(OpArguments& arguments) { return std::make_unique<OneHotOp>(arguments); }
OpPointer make_size(OpArguments& arguments) { return std::make_unique<SizeOp>(arguments); }
OpPointer make_non_zero(OpArguments& arguments) { return std::make_unique<NonZeroOp>(arguments); }

}  // namespace fcp
