// Trilu, the upper or lower triangle of matrices, and CumSum, running sums along an axis (which
// multiply by a triangle of ones). Both are linear: every bound goes through them.
// Cost: linear in the input. Reference: ONNX operator specification.
// Tested by tests/nn/ops/index_test.cc.
#include <vector>

#include "fcp/base/error.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/shared.h"

namespace fcp {
namespace {

class TriluOp : public Op {
 public:
  explicit TriluOp(OpArguments& arguments)
      : node_(arguments.node()), upper_(arguments.integer("upper", 1) != 0) {
    arguments.expect_inputs(1, 2);
  }
  Tensors forward(const Tensors& inputs) const override {
    expect_rank(inputs[0], 2, 16, node_, "input");
    int64_t k = 0;
    if (inputs.size() > 1 && inputs[1].defined()) {
      const std::vector<int64_t> given = to_integers(inputs[1], node_, "k");
      if (given.size() != 1)
        fail(describe(node_), ": k has ", given.size(), " numbers, expected 1");
      k = given[0];
    }
    // A mask instead of torch::triu, which knows neither all types nor empty matrices everywhere.
    const torch::Tensor& x = inputs[0];
    const auto options = torch::device(x.device()).dtype(torch::kLong);
    const torch::Tensor distance =
        torch::arange(x.size(-1), options) - torch::arange(x.size(-2), options).unsqueeze(1);
    return {x.masked_fill(upper_ ? distance < k : distance > k, 0)};
  }
  BoundRule bound_rule(const std::vector<bool>& constant) const override {
    return affine_in_first(constant);
  }

 private:
  Node node_;
  bool upper_;
};

class CumSumOp : public Op {
 public:
  explicit CumSumOp(OpArguments& arguments)
      : node_(arguments.node()),
        exclusive_(arguments.integer("exclusive", 0) != 0),
        reverse_(arguments.integer("reverse", 0) != 0) {
    arguments.expect_inputs(2, 2);
  }
  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    const int64_t axis = axis_of(inputs);
    const torch::Tensor from = reverse_ ? x.flip({axis}) : x;
    torch::Tensor sums = torch::cumsum(from, axis, x.scalar_type());
    if (exclusive_ && x.size(axis) > 0) {
      const torch::Tensor zero = torch::zeros_like(sums.narrow(axis, 0, 1));
      sums = torch::cat({zero, sums.narrow(axis, 0, x.size(axis) - 1)}, axis);
    }
    return {reverse_ ? sums.flip({axis}) : sums};
  }
  BoundRule bound_rule(const std::vector<bool>& constant) const override {
    return affine_in_first(constant);
  }
  double roundings(const Tensors& inputs) const override {
    return static_cast<double>(inputs[0].size(axis_of(inputs))) + 1;
  }

 private:
  int64_t axis_of(const Tensors& inputs) const {
    const std::vector<int64_t> axis = to_integers(inputs[1], node_, "axis");
    if (axis.size() != 1) fail(describe(node_), ": axis has ", axis.size(), " numbers, expected 1");
    return normalize_axis(axis[0], inputs[0].dim(), node_);
  }

  Node node_;
  bool exclusive_;
  bool reverse_;
};

}  // namespace

OpPointer make_trilu(OpArguments& arguments) { return std::make_unique<TriluOp>(arguments); }
OpPointer make_cum_sum(OpArguments& arguments) { return std::make_unique<CumSumOp>(arguments); }

}  // namespace fcp
