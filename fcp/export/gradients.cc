#include "fcp/export/gradients.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <c10/util/Exception.h>
#include <torch/utils.h>

#include "fcp/base/error.h"

namespace fcp {
namespace {

// Of 1 − y² and y (1 − y) in single precision, relative to the largest slopes 1 and 1/4.
constexpr double kDerivativeRoundoff = 0x1p-22;

// The largest matrix of an affine operator that is written into the file.
constexpr int64_t kLargestMatrix = int64_t{1} << 22;

[[noreturn]] void refuse_gradient(const Node& node) {
  fail(describe(node), ": its gradient is not written as ONNX nodes; linearized can be exported ",
       "for affine operators, products and ordinary activations over rows");
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

// J of one tensor: [K, width] doubles while it is the same for all rows, then a node [N, K, width].
struct Gradient {
  torch::Tensor constant;
  std::string node;
  torch::Tensor most;  // [K, width]: what |J| never exceeds; undefined: not known
};

class GradientWriter {
 public:
  GradientWriter(GraphBuilder& builder, const Network& head, const torch::Tensor& feature)
      : builder_(builder), head_(head), values_(example_values(head, feature)) {
    values_[head.inputs()[0].name] = feature;
    rows_ = feature.size(0);
    names_.resize(head.constants().size());
    names_[static_cast<size_t>(head.input_slots()[0])] = head.inputs()[0].name;
    for (const Step& step : head.steps()) {
      for (size_t i = 0; i < step.outputs.size(); ++i) {
        if (step.outputs[i] < 0 || !depends(step)) continue;
        names_[static_cast<size_t>(step.outputs[i])] = step.node.outputs[i];
      }
    }
  }

  std::string write(size_t output, Norm norm) {
    const std::string& name = head_.outputs()[output].name;
    if (name == head_.inputs()[0].name) fail("output '", name, "' is the feature itself");
    type_ = values_.at(name).scalar_type();
    const torch::Tensor one = torch::eye(values_.at(name).numel() / rows_, torch::kDouble);
    gradients_[head_.output_slots()[output]] = {one, "", one};
    const std::vector<Step>& steps = head_.steps();
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
      const auto found = gradients_.find(step->outputs[0]);
      if (found != gradients_.end() && depends(*step)) back(*step, found->second);
    }
    const auto found = gradients_.find(head_.input_slots()[0]);
    if (found == gradients_.end()) fail("output '", name, "' does not depend on the feature");
    row_ = values_.at(name).sizes().slice(1).vec();
    return reduced(found->second, norm);
  }

 private:
  // Whether numbers of the feature reach the step, and not its shape alone.
  bool depends(const Step& step) const {
    if (step.node.op == "Shape" || step.node.op == "Size") return false;
    return std::any_of(step.inputs.begin(), step.inputs.end(),
                       [&](int slot) { return varies(slot); });
  }
  bool varies(int slot) const { return slot >= 0 && !names_[static_cast<size_t>(slot)].empty(); }

  void back(const Step& step, const Gradient& gradient) {
    const torch::Tensor& value = values_.at(step.node.outputs[0]);
    if (value.dim() < 1 || value.size(0) != rows_ || !value.is_floating_point()) {
      refuse_gradient(step.node);
    }
    std::vector<bool> constant;
    size_t varying = 0;
    for (const int slot : step.inputs) {
      constant.push_back(!varies(slot));
      if (varies(slot)) ++varying;
    }
    const bool affine = step.op->bound_rule(constant) == BoundRule::kAffine;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      if (constant[i]) continue;
      const std::string& op = step.node.op;
      if (affine) {
        add(step.inputs[i], through_layer(gradient, matrix_of(step, i)));
      } else if (varying == 1 && step.inputs.size() >= 1 && i == 0 && op != "Mul" && op != "Div") {
        add(step.inputs[i], through_activation(gradient, step));
      } else if ((op == "Mul" || op == "Div") && step.inputs.size() == 2) {
        add(step.inputs[i], times(gradient, factor_of(step, i), torch::Tensor()));
      } else {
        refuse_gradient(step.node);
      }
    }
  }

  // Sums of what several readers of a tensor contribute.
  void add(int slot, const Gradient& part) {
    const auto [entry, fresh] = gradients_.emplace(slot, part);
    if (fresh) return;
    Gradient& all = entry->second;
    all.most = all.most.defined() && part.most.defined() ? all.most + part.most : torch::Tensor();
    if (all.constant.defined() && part.constant.defined()) {
      all.constant = all.constant + part.constant;
      return;
    }
    all.node = builder_.add("Add", {as_node(all), as_node(part)});
    all.constant = torch::Tensor();
  }

  std::string as_node(const Gradient& gradient) {
    if (!gradient.constant.defined()) return gradient.node;
    return builder_.constant(gradient.constant.to(type_).unsqueeze(0));
  }

  // [outputs, inputs] of an affine operator, by the columns that it makes of a basis.
  torch::Tensor matrix_of(const Step& step, size_t varying) const {
    const torch::Tensor& from = values_.at(names_[static_cast<size_t>(step.inputs[varying])]);
    const torch::Tensor& to = values_.at(step.node.outputs[0]);
    const int64_t width = from.numel() / rows_, height = to.numel() / rows_;
    if (width * height > kLargestMatrix) {
      fail(describe(step.node), ": its gradient would take a matrix of ", width, " x ", height,
           " numbers, more than export writes");
    }
    const torch::NoGradGuard no_gradients;
    Tensors inputs;
    for (const int slot : step.inputs) {
      torch::Tensor value;
      if (varies(slot)) {
        value = torch::zeros_like(values_.at(names_[static_cast<size_t>(slot)]));
      } else if (slot >= 0) {
        value = constant_of(slot);
      }
      inputs.push_back(value.defined() && value.is_floating_point() ? value.to(torch::kDouble)
                                                                    : value);
    }
    const torch::Tensor zero = inputs[varying];
    try {
      const auto first_row = [&] { return step.op->forward(inputs)[0].reshape({rows_, -1})[0]; };
      const torch::Tensor offset = first_row().clone();
      torch::Tensor matrix = torch::empty({height, width}, torch::kDouble);
      for (int64_t i = 0; i < width; ++i) {
        torch::Tensor unit = torch::zeros({rows_, width}, torch::kDouble);
        unit[0][i] = 1;
        inputs[varying] = unit.reshape(zero.sizes());
        matrix.select(1, i).copy_(first_row() - offset);
      }
      return matrix;
    } catch (const c10::Error&) {
      refuse_gradient(step.node);
    }
  }

  // A tensor that is the same for all rows: a constant, or what the example makes of shapes.
  torch::Tensor constant_of(int slot) const {
    const torch::Tensor& known = head_.constants()[static_cast<size_t>(slot)];
    if (known.defined()) return known;
    for (const Step& step : head_.steps()) {
      for (size_t i = 0; i < step.outputs.size(); ++i) {
        if (step.outputs[i] == slot) return values_.at(step.node.outputs[i]);
      }
    }
    return {};
  }

  Gradient through_layer(const Gradient& gradient, const torch::Tensor& matrix) {
    Gradient before;
    if (gradient.most.defined()) before.most = gradient.most.matmul(matrix.abs());
    if (gradient.constant.defined()) {
      before.constant = gradient.constant.matmul(matrix);
    } else {
      before.node = builder_.add("MatMul", {gradient.node, builder_.constant(matrix.to(type_))});
    }
    return before;
  }

  // J ⊙ the numbers of a tensor [N, …]; `largest`: what these never exceed, where that is known.
  Gradient times(const Gradient& gradient, const std::string& factor,
                 const torch::Tensor& largest) {
    Gradient before;
    before.node = builder_.add("Mul", {as_node(gradient), builder_.reshape_rows(factor, {1, -1})});
    if (gradient.most.defined() && largest.defined()) before.most = gradient.most * largest;
    return before;
  }

  // What the gradient of a product or quotient with respect to input i is, as a tensor of the
  // graph.
  std::string factor_of(const Step& step, size_t i) {
    const auto& [a, b] = std::pair(step.inputs[0], step.inputs[1]);
    for (const int slot : {a, b}) {
      if (!varies(slot) || values_.at(names_[static_cast<size_t>(slot)]).sizes() !=
                               values_.at(step.node.outputs[0]).sizes()) {
        refuse_gradient(step.node);
      }
    }
    const std::string& other = tensor(names_[static_cast<size_t>(i == 0 ? b : a)], step);
    if (step.node.op == "Mul") return other;
    const std::string& divisor = tensor(names_[static_cast<size_t>(b)], step);
    if (i == 0) return builder_.add("Reciprocal", {divisor});
    const std::string& y = tensor(step.node.outputs[0], step);
    return builder_.add("Neg", {builder_.add("Div", {y, divisor})});
  }

  // A tensor that the network's file has as well.
  const std::string& tensor(const std::string& name, const Step& step) const {
    if (!builder_.has(name)) refuse_gradient(step.node);
    return name;
  }

  Gradient through_activation(const Gradient& gradient, const Step& step) {
    const Node& node = step.node;
    const std::string& x = tensor(names_[static_cast<size_t>(step.inputs[0])], step);
    const std::string& y = tensor(node.outputs[0], step);
    const auto op = [&](const char* name, std::vector<std::string> inputs) {
      return builder_.add(name, std::move(inputs));
    };
    const auto attribute = [&](const char* name, float fallback) {
      const auto found = node.attributes.find(name);
      return found == node.attributes.end() ? fallback : std::get<float>(found->second);
    };
    const auto largest = [](double most) { return torch::full({1}, most, torch::kDouble); };
    if (node.op == "Relu" || node.op == "LeakyRelu") {
      const double below = node.op == "Relu" ? 0 : attribute("alpha", 0.01f);
      const std::string positive = op("Greater", {x, number(0)});
      return times(gradient, op("Where", {positive, number(1), number(below)}),
                   largest(std::max(1.0, std::abs(below))));
    }
    if (node.op == "Tanh") {
      ++cancelling_;
      return times(gradient, op("Sub", {number(1), op("Mul", {y, y})}), largest(1));
    }
    if (node.op == "Sigmoid") {
      ++cancelling_;
      return times(gradient, op("Mul", {y, op("Sub", {number(1), y})}), largest(0.25));
    }
    if (node.op == "Softplus") return times(gradient, op("Sigmoid", {x}), largest(1));
    if (node.op == "Exp") return times(gradient, y, {});
    if (node.op == "Sqrt") return times(gradient, op("Div", {number(0.5), y}), {});
    if (node.op == "Log") return times(gradient, op("Reciprocal", {x}), {});
    if (node.op == "Erf") {
      const std::string bell = op("Exp", {op("Neg", {op("Mul", {x, x})})});
      return times(gradient, op("Mul", {bell, number(2 / std::sqrt(M_PI))}), largest(1.13));
    }
    if (node.op == "Softsign") {
      const std::string root = op("Reciprocal", {op("Add", {op("Abs", {x}), number(1)})});
      return times(gradient, op("Mul", {root, root}), largest(1));
    }
    if (node.op == "Abs") return times(gradient, op("Sign", {x}), largest(1));
    if (node.op == "Elu") {
      const double alpha = attribute("alpha", 1);
      const std::string below = op("Add", {y, number(alpha)});
      return times(gradient, op("Where", {op("Greater", {x, number(0)}), number(1), below}),
                   largest(std::max(1.0, std::abs(alpha))));
    }
    refuse_gradient(node);
  }

  std::string number(double value) { return builder_.constant(torch::full({1}, value, type_)); }

  std::string reduced(const Gradient& gradient, Norm norm) {
    if (gradient.constant.defined()) {
      return constant_row(dual_norm(gradient.constant, norm));
    }
    std::string norms = reduced_node(gradient.node, norm);
    if (row_.size() != 1) norms = builder_.reshape_rows(norms, row_);
    if (cancelling_ == 0 || !gradient.most.defined()) return norms;
    const torch::Tensor slack =
        dual_norm(gradient.most, norm) * (cancelling_ * kDerivativeRoundoff);
    return builder_.add("Add", {norms, constant_row(slack)});
  }

  // Numbers [K] in the shape of one row of the output.
  std::string constant_row(const torch::Tensor& numbers) {
    std::vector<int64_t> shape = row_;
    shape.insert(shape.begin(), 1);
    return builder_.constant(numbers.to(type_).reshape(shape));
  }

  std::string reduced_node(const std::string& node, Norm norm) {
    if (norm == Norm::kTwo) {
      const std::string squares = builder_.add("Mul", {node, node});
      return builder_.add("Sqrt", {builder_.reduce("ReduceSum", squares, 2, false)});
    }
    const std::string sizes = builder_.add("Abs", {node});
    return builder_.reduce(norm == Norm::kInf ? "ReduceSum" : "ReduceMax", sizes, 2, false);
  }

  GraphBuilder& builder_;
  const Network& head_;
  std::map<std::string, torch::Tensor> values_;
  std::vector<std::string> names_;     // by slot; empty: the same for all rows
  std::map<int, Gradient> gradients_;  // by slot
  int64_t rows_ = 1;                   // of the example
  std::vector<int64_t> row_;           // the shape of a row of the output
  torch::ScalarType type_ = torch::kFloat;
  double cancelling_ = 0;  // activations whose derivative cancels
};

}  // namespace

std::string write_gradients(GraphBuilder& builder, const Network& head, size_t output,
                            const torch::Tensor& feature, Norm norm) {
  return GradientWriter(builder, head, feature).write(output, norm);
}

}  // namespace fcp
