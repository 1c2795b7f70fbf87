// Einsum: sums of products over named axes, in libtorch's own notation, which is numpy's. With one
// factor constant every bound goes through; products of two varying factors have none here.
// Cost: the product of all axes' lengths. Reference: ONNX operator specification.
// Tested by tests/parity/op_cases_test.cc and tests/bounds/rules_test.cc.
#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/network/ops/checks.h"
#include "fcp/network/ops/factories.h"
#include "fcp/network/ops/shared.h"

namespace fcp {
namespace {

class EinsumOp : public Op {
 public:
  explicit EinsumOp(OpArguments& arguments)
      : node_(arguments.node()), equation_(arguments.text("equation", "")) {
    const size_t count = std::max<size_t>(1, node_.inputs.size());
    arguments.expect_inputs(count, count);
    std::erase_if(equation_, [](unsigned char letter) { return std::isspace(letter); });
    if (equation_.empty()) fail(describe(node_), ": attribute 'equation' is missing");
  }

  Tensors forward(const Tensors& inputs) const override {
    for (const torch::Tensor& input : inputs) expect_type_of(inputs[0], input, node_, "an input");
    check_operands(inputs);
    return {torch::einsum(equation_, inputs)};
  }

  BoundRule bound_rule(const std::vector<bool>& constant) const override {
    if (constant.size() == 1) return BoundRule::kAffine;
    const bool one = constant.size() == 2 && (constant[0] || constant[1]);
    return one ? BoundRule::kAffine : BoundRule::kNone;
  }
  std::vector<Range> interval(const std::vector<Range>& inputs, double unit) const override {
    return inputs.size() == 1 ? Op::interval(inputs, unit) : product_interval(*this, inputs);
  }
  double roundings(const Tensors& inputs) const override { return terms(inputs) + 2; }
  double flops(const Tensors& inputs, const Tensors& outputs) const override {
    return 2 * static_cast<double>(outputs[0].numel()) * terms(inputs);
  }

 private:
  // The letters of each operand, and of the output: those that appear once where it is not given.
  std::vector<std::string> operands() const {
    std::vector<std::string> parts(1);
    for (const char letter : equation_.substr(0, equation_.find("->"))) {
      if (letter == ',') parts.emplace_back();
      if (letter != ',') parts.back() += letter;
    }
    return parts;
  }
  bool in_output(char letter) const {
    const size_t arrow = equation_.find("->");
    if (arrow != std::string::npos) return equation_.find(letter, arrow + 2) != std::string::npos;
    return letter == '.' || std::count(equation_.begin(), equation_.end(), letter) == 1;
  }

  // How many products a number of the output adds: the lengths of all axes that it does not have.
  double terms(const Tensors& inputs) const {
    const std::vector<std::string> parts = operands();
    std::map<char, double> lengths;
    double hidden = 1;  // of the axes that "..." stands for
    for (size_t i = 0; i < inputs.size(); ++i) {
      const int64_t letters = std::count_if(parts[i].begin(), parts[i].end(),
                                            [](char letter) { return letter != '.'; });
      int64_t axis = 0;
      double here = 1;
      for (size_t at = 0; at < parts[i].size(); ++at) {
        if (parts[i][at] != '.') {
          double& length = lengths[parts[i][at]];
          length = std::max(length, static_cast<double>(inputs[i].size(axis++)));
          continue;
        }
        for (int64_t rest = inputs[i].dim() - letters; rest > 0; --rest) {
          here *= static_cast<double>(inputs[i].size(axis++));
        }
        at += 2;
      }
      hidden = std::max(hidden, here);
    }
    double result = in_output('.') ? 1 : hidden;
    for (const auto& [letter, length] : lengths) {
      if (!in_output(letter)) result *= length;
    }
    return result;
  }

  // libtorch's own message names no node.
  void check_operands(const Tensors& inputs) const {
    if (operands().size() != inputs.size()) {
      fail(describe(node_), ": equation '", equation_, "' has ", operands().size(),
           " operands, found ", inputs.size(), " inputs");
    }
  }

  Node node_;
  std::string equation_;
};

}  // namespace

OpPointer make_einsum(OpArguments& arguments) { return std::make_unique<EinsumOp>(arguments); }

}  // namespace fcp
