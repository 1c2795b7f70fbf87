// Einsum: sums of products over named axes, in libtorch's own notation, which is numpy's. With one
// factor constant every bound goes through; a product of two varying factors has bounds where all
// axes have letters, and rows come first in both factors and in the output.
// Cost: the product of all axes' lengths. Reference: ONNX operator specification.
// Tested by tests/parity/op_cases_test.cc and tests/bounds/rules_test.cc.
#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/shared.h"

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
    if (one) return BoundRule::kAffine;
    return multiplies_rows() ? BoundRule::kBilinear : BoundRule::kNone;
  }
  std::vector<Range> interval(const std::vector<Range>& inputs, double unit) const override {
    const auto varies = [](const Range& input) { return !input.lower.is_same(input.upper); };
    if (inputs.size() == 2 && varies(inputs[0]) && varies(inputs[1])) {
      return {bilinear_range(inputs, unit)};
    }
    return inputs.size() == 1 ? Op::interval(inputs, unit) : product_interval(*this, inputs);
  }
  double roundings(const Tensors& inputs) const override { return terms(inputs) + 2; }
  double workspace(const Tensors& inputs, const Tensors& outputs) const override {
    return inputs.size() == 2 ? 6 * static_cast<double>(outputs[0].numel()) * terms(inputs) : 0;
  }
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
  std::string output_letters() const {
    const size_t arrow = equation_.find("->");
    if (arrow != std::string::npos) return equation_.substr(arrow + 2);
    std::string letters;
    for (const char letter : equation_) {
      if (letter != ',' && in_output(letter)) letters += letter;
    }
    std::sort(letters.begin(), letters.end());
    return letters;
  }

  // Two factors with rows first and each axis named once.
  bool multiplies_rows() const {
    const std::vector<std::string> parts = operands();
    const std::string output = output_letters();
    if (parts.size() != 2 || output.empty() || equation_.find('.') != std::string::npos) {
      return false;
    }
    for (std::string letters : parts) {
      if (letters.empty() || letters[0] != output[0]) return false;
      std::sort(letters.begin(), letters.end());
      if (std::adjacent_find(letters.begin(), letters.end()) != letters.end()) return false;
    }
    return true;
  }

  // Every product from the smallest to the largest of its four corners, then their sums.
  Range bilinear_range(const std::vector<Range>& inputs, double unit) const {
    const std::vector<std::string> parts = operands();
    std::string letters = output_letters();
    const auto kept = static_cast<int64_t>(letters.size());
    for (const char letter : parts[0] + parts[1]) {
      if (letters.find(letter) == std::string::npos) letters += letter;
    }
    // All axes, in the order of `letters`.
    const auto spread = [&](const torch::Tensor& x, const std::string& own) {
      std::vector<int64_t> order, shape;
      for (const char letter : letters) {
        const size_t at = own.find(letter);
        if (at != std::string::npos) order.push_back(static_cast<int64_t>(at));
        shape.push_back(at == std::string::npos ? 1 : x.size(static_cast<int64_t>(at)));
      }
      return x.permute(order).reshape(shape);
    };
    torch::Tensor least, most;
    for (const torch::Tensor& left : {inputs[0].lower, inputs[0].upper}) {
      for (const torch::Tensor& right : {inputs[1].lower, inputs[1].upper}) {
        torch::Tensor product = spread(left, parts[0]) * spread(right, parts[1]);
        product = product.masked_fill(product.isnan(), 0);  // 0 · ∞
        least = least.defined() ? torch::minimum(least, product) : product;
        most = most.defined() ? torch::maximum(most, product) : product;
      }
    }
    torch::Tensor error = torch::maximum(least.abs(), most.abs());
    if (least.dim() > kept) {
      std::vector<int64_t> hidden(static_cast<size_t>(least.dim() - kept));
      std::iota(hidden.begin(), hidden.end(), kept);
      least = least.sum(hidden);
      most = most.sum(hidden);
      error = error.sum(hidden);
    }
    error = error * ((terms({inputs[0].lower, inputs[1].lower}) + 4) * unit * 1.001);
    return {least - error, most + error};
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
