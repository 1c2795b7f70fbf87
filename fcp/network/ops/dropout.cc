// Dropout, after the ONNX operator definition.
// Tested by tests/network/ops_activations_test.cc.
#include <vector>

#include "fcp/base/error.h"
#include "fcp/network/ops/factories.h"
#include "fcp/network/ops/shared.h"

namespace fcp {
namespace {

// The identity, since we never train through a graph; the mask, where wanted, keeps everything.
class DropoutOp : public Op {
 public:
  explicit DropoutOp(OpArguments& arguments) : node_(arguments.node()) {
    if (arguments.opset() >= 12) {
      arguments.expect_inputs(1, 3);
      arguments.ignore("seed");
    } else {
      arguments.expect_inputs(1, 1);
      arguments.ignore("ratio");
    }
  }

  Tensors forward(const Tensors& inputs) const override {
    if (inputs.size() > 2 && inputs[2].defined()) {
      const torch::Tensor& training = inputs[2];
      if (training.numel() != 1 || training.scalar_type() != torch::kBool) {
        fail(describe(node_), ": training_mode must be one truth value, found ",
             training.scalar_type(), " of shape ", training.sizes());
      }
      if (training.item<bool>()) {
        fail(describe(node_), ": training_mode is true, expected a network for inference");
      }
    }
    Tensors outputs = {inputs[0]};
    if (node_.outputs.size() > 1) {
      outputs.push_back(torch::ones_like(inputs[0], torch::kBool));
    }
    return outputs;
  }
  BoundRule bound_rule(const std::vector<bool>& constant) const override {
    return affine_in_first(constant);
  }
  MissingRule missing_rule() const override { return MissingRule::kMoves; }

 private:
  Node node_;
};

}  // namespace

OpPointer make_dropout(OpArguments& arguments) { return std::make_unique<DropoutOp>(arguments); }

}  // namespace fcp
