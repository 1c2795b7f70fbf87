#include "fcp/export/slopes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include <torch/utils.h>

#include "fcp/base/error.h"

namespace fcp {
namespace {

// Of 1 − y² and y (1 − y) in single precision, relative to the largest slopes 1 and 1/4.
constexpr double kDerivativeRoundoff = 0x1p-22;

[[noreturn]] void refuse_slope(const Node& node) {
  fail(describe(node), ": its gradient is not written as ONNX nodes; linearized can be exported ",
       "for perceptrons: Gemm, MatMul, Relu, LeakyRelu, Tanh, Sigmoid and constants");
}

// A network's value at an example, for the shapes.
std::map<std::string, torch::Tensor> example_values(const Network& head,
                                                    const torch::Tensor& feature) {
  const torch::NoGradGuard no_gradients;
  std::map<std::string, torch::Tensor> values;
  head.run({feature}, [&](const Step& step, const Tensors&, const Tensors& outputs) {
    for (size_t i = 0; i < outputs.size() && i < step.node.outputs.size(); ++i) {
      values[step.node.outputs[i]] = outputs[i];
    }
  });
  return values;
}

class SlopeWriter {
 public:
  SlopeWriter(GraphBuilder& builder, const Network& head, const torch::Tensor& feature)
      : builder_(builder), head_(head), values_(example_values(head, feature)) {}

  std::string write(size_t output, Norm norm) {
    int slot = head_.output_slots()[output];
    const std::string& name = head_.outputs()[output].name;
    if (!values_.contains(name)) fail("output '", name, "' is the feature itself");
    type_ = values_.at(name).scalar_type();
    constant_ = most_ = torch::eye(values_.at(name).size(-1), torch::kDouble);
    while (slot != head_.input_slots()[0]) {
      const Step& step = producer(slot);
      const size_t input = varying_input(step);
      back(step, input);
      slot = step.inputs[input];
    }
    return reduced(norm);
  }

 private:
  const Step& producer(int slot) const {
    for (const Step& step : head_.steps()) {
      if (step.outputs[0] != slot) continue;
      if (values_.at(step.node.outputs[0]).dim() != 2) refuse_slope(step.node);
      return step;
    }
    fail("linearized can be exported for a chain of layers alone");
  }

  // The only input that is not a constant.
  size_t varying_input(const Step& step) const {
    std::optional<size_t> found;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      if (step.inputs[i] < 0 || constant_of(step, i).defined()) continue;
      if (found) refuse_slope(step.node);
      found = i;
    }
    if (!found) refuse_slope(step.node);
    return *found;
  }

  const torch::Tensor& constant_of(const Step& step, size_t input) const {
    return head_.constants()[static_cast<size_t>(step.inputs[input])];
  }

  void back(const Step& step, size_t input) {
    const Node& node = step.node;
    const std::string& op = node.op;
    if ((op == "Gemm" || op == "MatMul") && input == 0) {
      through_layer(matrix_of(step));
    } else if (op == "Add" || op == "Identity" || op == "Dropout" || (op == "Sub" && input == 0)) {
      return;
    } else if (op == "Sub") {
      scale(torch::full({1}, -1, torch::kDouble));
    } else if (op == "Mul" || (op == "Div" && input == 0)) {
      const torch::Tensor factor = constant_of(step, 1 - input).to(torch::kDouble);
      if (factor.numel() != 1 && factor.numel() != factor.size(-1)) refuse_slope(node);
      scale(op == "Mul" ? factor.flatten() : factor.flatten().reciprocal());
    } else {
      through_activation(node);
    }
  }

  // [outputs, inputs] of y = x M'.
  static torch::Tensor matrix_of(const Step& step, const torch::Tensor& weight) {
    const auto attribute = [&](const char* name, auto fallback) {
      const auto found = step.node.attributes.find(name);
      if (found == step.node.attributes.end()) return fallback;
      return std::get<decltype(fallback)>(found->second);
    };
    if (weight.dim() != 2 || attribute("transA", int64_t{0}) != 0) refuse_slope(step.node);
    const torch::Tensor matrix = attribute("transB", int64_t{0}) != 0 ? weight : weight.t();
    return matrix.to(torch::kDouble) * static_cast<double>(attribute("alpha", 1.0f));
  }
  torch::Tensor matrix_of(const Step& step) const { return matrix_of(step, constant_of(step, 1)); }

  void through_layer(const torch::Tensor& matrix) {
    most_ = most_.matmul(matrix.abs());
    if (constant_.defined()) {
      constant_ = constant_.matmul(matrix);
    } else {
      node_ = builder_.add("MatMul", {node_, builder_.constant(matrix.to(type_))});
    }
  }

  void scale(const torch::Tensor& factor) {  // [1] or [width]
    most_ = most_ * factor.abs();
    if (constant_.defined()) {
      constant_ = constant_ * factor;
    } else {
      node_ = builder_.add("Mul", {node_, builder_.constant(factor.to(type_))});
    }
  }

  void through_activation(const Node& node) {
    const std::string slope = builder_.reshape_rows(activation_slope(node), {1, -1});
    if (constant_.defined()) {
      node_ = builder_.constant(constant_.to(type_).unsqueeze(0));
      constant_ = torch::Tensor();
    }
    node_ = builder_.add("Mul", {node_, slope});
  }

  // f' at the network's own tensors, [N, width].
  std::string activation_slope(const Node& node) {
    const std::string& y = node.outputs[0];
    if (node.op == "Tanh" || node.op == "Sigmoid") ++cancelling_;
    if (node.op == "Sigmoid") most_ = most_ * 0.25;  // its largest slope
    if (node.op == "Tanh") {
      return builder_.add("Sub", {number(1), builder_.add("Mul", {y, y})});
    }
    if (node.op == "Sigmoid") {
      return builder_.add("Mul", {y, builder_.add("Sub", {number(1), y})});
    }
    if (node.op != "Relu" && node.op != "LeakyRelu") refuse_slope(node);
    double below = 0;
    if (node.op == "LeakyRelu") {
      const auto alpha = node.attributes.find("alpha");
      below = alpha == node.attributes.end() ? 0.01 : std::get<float>(alpha->second);
    }
    most_ = most_ * std::max(1.0, std::abs(below));
    const std::string positive = builder_.add("Greater", {node.inputs[0], number(0)});
    return builder_.add("Where", {positive, number(1), number(below)});
  }

  std::string number(double value) { return builder_.constant(torch::full({1}, value, type_)); }

  std::string reduced(Norm norm) {
    if (constant_.defined()) {
      return builder_.constant(dual_norm(constant_, norm).to(type_).unsqueeze(0));
    }
    const std::string plain = reduced_node(norm);
    if (cancelling_ == 0) return plain;
    const torch::Tensor slack = dual_norm(most_, norm) * (cancelling_ * kDerivativeRoundoff);
    return builder_.add("Add", {plain, builder_.constant(slack.to(type_).unsqueeze(0))});
  }

  std::string reduced_node(Norm norm) {
    if (norm == Norm::kTwo) {
      const std::string squares = builder_.add("Mul", {node_, node_});
      return builder_.add("Sqrt", {builder_.reduce("ReduceSum", squares, 2, false)});
    }
    const std::string sizes = builder_.add("Abs", {node_});
    return builder_.reduce(norm == Norm::kInf ? "ReduceSum" : "ReduceMax", sizes, 2, false);
  }

  GraphBuilder& builder_;
  const Network& head_;
  std::map<std::string, torch::Tensor> values_;
  torch::ScalarType type_ = torch::kFloat;
  torch::Tensor constant_;  // J [K, width] while it is the same for all rows;
  std::string node_;        // then [N, K, width]
  torch::Tensor most_;      // [K, width]: what |J| never exceeds
  double cancelling_ = 0;   // activations whose derivative cancels
};

}  // namespace

std::string write_slopes(GraphBuilder& builder, const Network& head, size_t output,
                         const torch::Tensor& feature, Norm norm) {
  return SlopeWriter(builder, head, feature).write(output, norm);
}

}  // namespace fcp
