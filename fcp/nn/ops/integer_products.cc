// Products of quantised matrices: MatMulInteger, which gives int32, and QLinearMatMul, which
// quantises its result again. Computed in double precision, where sums of products of 8-bit numbers
// are exact; what they are multiplied by is rounded to single precision. No gradient, no bounds.
// Cost: 2·M·K·N. Reference: ONNX operator specification. Tested by tests/parity/op_cases_test.cc.
#include <vector>

#include "fcp/base/error.h"
#include "fcp/nn/ops/checks.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/quantize.h"
#include "fcp/nn/ops/shared.h"

namespace fcp {
namespace {

torch::Tensor parameter(const Tensors& inputs, size_t index) {
  const bool given = index < inputs.size() && inputs[index].defined();
  return given ? inputs[index].to(torch::kDouble) : torch::zeros({}, torch::kDouble);
}

// One number, one per row of A (a column), or one per column of B (a row).
torch::Tensor beside(const torch::Tensor& value, bool rows) {
  return rows && value.dim() == 1 && value.numel() > 1 ? value.unsqueeze(1) : value;
}

class IntegerMatMul : public Op {
 public:
  explicit IntegerMatMul(OpArguments& arguments) : node_(arguments.node()) {
    arguments.expect_inputs(2, 4);
  }
  Tensors forward(const Tensors& inputs) const override {
    expect_rank(inputs[0], 1, 16, node_, "A");
    expect_rank(inputs[1], 1, 16, node_, "B");
    const torch::Tensor a = inputs[0].to(torch::kDouble) - beside(parameter(inputs, 2), true);
    const torch::Tensor b = inputs[1].to(torch::kDouble) - parameter(inputs, 3);
    return {torch::matmul(a, b).to(torch::kInt)};
  }
  bool differentiable() const override { return false; }

 private:
  Node node_;
};

// a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero.
class QuantizedMatMul : public Op {
 public:
  explicit QuantizedMatMul(OpArguments& arguments) : node_(arguments.node()) {
    arguments.expect_inputs(8, 8);
  }
  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor a = inputs[0].to(torch::kDouble) - beside(parameter(inputs, 2), true);
    const torch::Tensor b = inputs[3].to(torch::kDouble) - parameter(inputs, 5);
    const torch::Tensor factor =
        (beside(inputs[1], true) * inputs[4] / beside(inputs[6], true)).to(torch::kFloat);
    const torch::Tensor y = torch::round(torch::matmul(a, b).to(torch::kFloat) * factor);
    const torch::Tensor zero = beside(parameter(inputs, 7), true).to(torch::kFloat);
    return {saturate(y + zero, inputs[7].scalar_type(), node_)};
  }
  bool differentiable() const override { return false; }

 private:
  Node node_;
};

}  // namespace

OpPointer make_matmul_integer(OpArguments& arguments) {
  return std::make_unique<IntegerMatMul>(arguments);
}

OpPointer make_qlinear_matmul(OpArguments& arguments) {
  return std::make_unique<QuantizedMatMul>(arguments);
}

}  // namespace fcp
