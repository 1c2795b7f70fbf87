// Dropout, after the ONNX operator definition.
// Tested by tests/nn/ops/activations_test.cc.
#include <vector>

#include "fcp/base/error.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/shared.h"

namespace fcp {
namespace {

// The identity: at inference, and in training mode where nothing is dropped. The mask, where
// wanted, keeps everything.
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
    if (trains(inputs) && ratio(inputs) != 0) {
      fail(describe(node_), ": is in training mode and drops numbers at random, so that a row ",
           "would get another answer each time; export the network for inference (in PyTorch, ",
           "call model.eval() first)");
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
  bool trains(const Tensors& inputs) const {
    if (inputs.size() < 3 || !inputs[2].defined()) return false;
    const torch::Tensor& training = inputs[2];
    if (training.numel() != 1 || training.scalar_type() != torch::kBool) {
      fail(describe(node_), ": training_mode must be one truth value, found ",
           training.scalar_type(), " of shape ", training.sizes());
    }
    return training.item<bool>();
  }
  double ratio(const Tensors& inputs) const {
    constexpr double kDefault = 0.5;
    if (inputs.size() < 2 || !inputs[1].defined()) return kDefault;
    if (inputs[1].numel() != 1) {
      fail(describe(node_), ": ratio must be one number, found shape ", inputs[1].sizes());
    }
    return inputs[1].item<double>();
  }

  Node node_;
};

}  // namespace

OpPointer make_dropout(OpArguments& arguments) { return std::make_unique<DropoutOp>(arguments); }

}  // namespace fcp
