// LpNormalization: each line along an axis divided by its l1 or l2 norm; 0 where that is 0.
// Gradients flow; no bounds.
// Cost: linear. Reference: ONNX operator specification. Tested by tests/parity/op_cases_test.cc.
#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/nn/ops/checks.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/shared.h"

namespace fcp {
namespace {

class LpNormalizationOp : public Op {
 public:
  explicit LpNormalizationOp(OpArguments& arguments)
      : node_(arguments.node()),
        axis_(arguments.integer("axis", -1)),
        p_(arguments.integer("p", 2)) {
    arguments.expect_inputs(1, 1);
    if (p_ != 1 && p_ != 2) fail(describe(node_), ": p is ", p_, ", expected 1 or 2");
  }

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    expect_floating(x, node_, "input");
    expect_rank(x, 1, 16, node_, "input");
    const int64_t axis = normalize_axis(axis_, x.dim(), node_);
    torch::Tensor norm = (p_ == 1 ? x.abs() : x * x).sum(axis, /*keepdim=*/true);
    if (p_ == 2) norm = norm.sqrt();
    return {x / norm.masked_fill(norm == 0, 1)};
  }

 private:
  Node node_;
  int64_t axis_, p_;
};

}  // namespace

OpPointer make_lp_normalization(OpArguments& arguments) {
  return std::make_unique<LpNormalizationOp>(arguments);
}

}  // namespace fcp
