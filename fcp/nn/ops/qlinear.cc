// Operators on quantised tensors, as ONNX Runtime's quantize_static and quantize_dynamic write:
// ConvInteger and QLinearConv of ONNX, and QLinearAdd, QLinearMul, QLinearSigmoid,
// QLinearLeakyRelu, QLinearGlobalAveragePool, QLinearConcat, QLinearSoftmax, QGemm,
// MatMulIntegerToFloat and DynamicQuantizeMatMul of com.microsoft. A quantised tensor is
// (q − zero) · scale; results are quantised again by round(y / scale) + zero, ties to even.
//
// Sums of products are exact (in double precision); what they are multiplied by is rounded to
// single precision, as runtimes do. No gradient, no bounds.
// Cost: that of the operator on plain numbers. Reference: ONNX operator specification; ONNX
// Runtime, docs/ContribOperators.md. Tested by tests/nn/ops/quantize_test.cc and
// tests/parity/ml_cases_test.cc.
#include <functional>
#include <memory>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/quantize.h"
#include "fcp/nn/ops/shared.h"

namespace fcp {
namespace {

class QuantizedOp : public Op {
 public:
  using Function = std::function<torch::Tensor(const Tensors&)>;
  explicit QuantizedOp(Function function) : function_(std::move(function)) {}
  Tensors forward(const Tensors& inputs) const override { return {function_(inputs)}; }
  bool differentiable() const override { return false; }

 private:
  Function function_;
};

OpPointer quantized_op(QuantizedOp::Function function) {
  return std::make_unique<QuantizedOp>(std::move(function));
}

torch::Tensor given_or_zero(const Tensors& inputs, size_t index) {
  const bool given = index < inputs.size() && inputs[index].defined();
  return given ? inputs[index].to(torch::kDouble) : torch::zeros({}, torch::kDouble);
}

bool is_given(const Tensors& inputs, size_t index) {
  return index < inputs.size() && inputs[index].defined();
}

// (q − zero) · scale of the inputs `first`, and the two after it.
torch::Tensor dequantized(const Tensors& inputs, size_t first) {
  return (inputs[first].to(torch::kDouble) - given_or_zero(inputs, first + 2)) *
         given_or_zero(inputs, first + 1);
}

// In single precision, where runtimes round.
torch::Tensor quantized(const torch::Tensor& y, const Tensors& inputs, size_t scale,
                        torch::ScalarType type, const Node& node) {
  const torch::Tensor steps = y.to(torch::kFloat) / given_or_zero(inputs, scale).to(torch::kFloat);
  const torch::Tensor zero = given_or_zero(inputs, scale + 1).to(torch::kFloat);
  return saturate(torch::round(steps) + zero, type, node);
}

torch::ScalarType type_of_zero(const Tensors& inputs, size_t index, torch::ScalarType otherwise) {
  return is_given(inputs, index) ? inputs[index].scalar_type() : otherwise;
}

// One number for each filter, beside W or beside channels of the output.
torch::Tensor per_filter(const torch::Tensor& values, int64_t rank, int64_t axis) {
  if (values.numel() == 1) return values.reshape({});
  std::vector<int64_t> shape(static_cast<size_t>(rank), 1);
  shape[static_cast<size_t>(axis)] = values.numel();
  return values.reshape(shape);
}

// A·B of the node's own attributes on plain doubles.
using Convolve = std::function<torch::Tensor(const torch::Tensor& x, const torch::Tensor& w)>;
Convolve plain_convolution(OpArguments& arguments) {
  Node node = arguments.node();
  node.op = "Conv";
  node.inputs.resize(2);
  OpArguments own(node, arguments.opset());
  for (const auto& [name, value] : node.attributes) arguments.ignore(name);
  const std::shared_ptr<const Op> op = make_conv(own);
  own.finish();
  return [op](const torch::Tensor& x, const torch::Tensor& w) { return op->forward({x, w})[0]; };
}

OpPointer make_elementwise(OpArguments& arguments,
                           torch::Tensor (*function)(const torch::Tensor&, const torch::Tensor&)) {
  arguments.expect_inputs(7, 8);
  const Node node = arguments.node();
  return quantized_op([node, function](const Tensors& inputs) {
    return quantized(function(dequantized(inputs, 0), dequantized(inputs, 3)), inputs, 6,
                     inputs[0].scalar_type(), node);
  });
}

// X, x_scale, x_zero, y_scale, y_zero.
OpPointer make_one_input(OpArguments& arguments,
                         std::function<torch::Tensor(const torch::Tensor&)> function) {
  arguments.expect_inputs(4, 5);
  const Node node = arguments.node();
  return quantized_op([node, function = std::move(function)](const Tensors& inputs) {
    return quantized(function(dequantized(inputs, 0)), inputs, 3, inputs[0].scalar_type(), node);
  });
}

}  // namespace

OpPointer make_conv_integer(OpArguments& arguments) {
  arguments.expect_inputs(2, 4);
  const Convolve convolve = plain_convolution(arguments);
  return quantized_op([convolve](const Tensors& inputs) {
    const torch::Tensor x = inputs[0].to(torch::kDouble) - given_or_zero(inputs, 2);
    const torch::Tensor zero = given_or_zero(inputs, 3);
    const torch::Tensor w = inputs[1].to(torch::kDouble) - per_filter(zero, inputs[1].dim(), 0);
    return convolve(x, w).to(torch::kInt);
  });
}

// x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, B (int32, in steps x_scale · w_scale).
OpPointer make_qlinear_conv(OpArguments& arguments) {
  arguments.expect_inputs(8, 9);
  const Node node = arguments.node();
  const Convolve convolve = plain_convolution(arguments);
  return quantized_op([node, convolve](const Tensors& inputs) {
    const int64_t rank = inputs[0].dim();
    const torch::Tensor x = inputs[0].to(torch::kDouble) - given_or_zero(inputs, 2);
    const torch::Tensor w =
        inputs[3].to(torch::kDouble) - per_filter(given_or_zero(inputs, 5), rank, 0);
    torch::Tensor sum = convolve(x, w);
    if (is_given(inputs, 8)) sum = sum + per_filter(inputs[8].to(torch::kDouble), rank, 1);
    const torch::Tensor factor =
        (inputs[1] * per_filter(inputs[4], rank, 1) / inputs[6]).to(torch::kFloat);
    const torch::Tensor zero = given_or_zero(inputs, 7).to(torch::kFloat);
    return saturate(torch::round(sum.to(torch::kFloat) * factor) + zero,
                    type_of_zero(inputs, 7, inputs[0].scalar_type()), node);
  });
}

OpPointer make_qlinear_add(OpArguments& arguments) {
  return make_elementwise(arguments,
                          [](const torch::Tensor& a, const torch::Tensor& b) { return a + b; });
}

OpPointer make_qlinear_mul(OpArguments& arguments) {
  return make_elementwise(arguments,
                          [](const torch::Tensor& a, const torch::Tensor& b) { return a * b; });
}

OpPointer make_qlinear_sigmoid(OpArguments& arguments) {
  return make_one_input(arguments, [](const torch::Tensor& x) { return torch::sigmoid(x); });
}

OpPointer make_qlinear_leaky_relu(OpArguments& arguments) {
  const double slope = arguments.number("alpha", 0.01);
  return make_one_input(
      arguments, [slope](const torch::Tensor& x) { return torch::where(x < 0, x * slope, x); });
}

OpPointer make_qlinear_softmax(OpArguments& arguments) {
  const int64_t axis = arguments.integer("axis", -1);
  const bool flattens = arguments.integer("opset", 13) < 13;
  const Node node = arguments.node();
  return make_one_input(arguments, [axis, flattens, node](const torch::Tensor& x) {
    const int64_t at = normalize_axis(axis, x.dim(), node);
    if (!flattens) return torch::softmax(x, at);
    return torch::softmax(x.flatten(at), at).reshape(x.sizes());
  });
}

OpPointer make_qlinear_global_average_pool(OpArguments& arguments) {
  const bool last = arguments.integer("channels_last", 0) != 0;
  return make_one_input(arguments, [last](const torch::Tensor& x) {
    std::vector<int64_t> axes;
    for (int64_t i = last ? 1 : 2; i < (last ? x.dim() - 1 : x.dim()); ++i) axes.push_back(i);
    return x.mean(axes, /*keepdim=*/true);
  });
}

// y_scale, y_zero, then (X, scale, zero) for each part.
OpPointer make_qlinear_concat(OpArguments& arguments) {
  const size_t count = arguments.node().inputs.size();
  arguments.expect_inputs(5, std::max<size_t>(count, 5));
  const Node node = arguments.node();
  const int64_t axis = arguments.integer("axis", 0);
  if (count % 3 != 2) fail(describe(node), ": expected two inputs and three for each part");
  return quantized_op([node, axis](const Tensors& inputs) {
    Tensors parts;
    for (size_t i = 2; i + 2 < inputs.size(); i += 3) parts.push_back(dequantized(inputs, i));
    return quantized(torch::cat(parts, axis), inputs, 0, inputs[2].scalar_type(), node);
  });
}

// A, a_scale, a_zero, B, b_scale, b_zero, C (int32, in steps of a_scale · b_scale), y_scale,
// y_zero; plain numbers where no y_scale is given.
OpPointer make_qgemm(OpArguments& arguments) {
  arguments.expect_inputs(6, 9);
  const Node node = arguments.node();
  const bool left = arguments.integer("transA", 0) != 0,
             right = arguments.integer("transB", 0) != 0;
  const double alpha = arguments.number("alpha", 1);
  return quantized_op([node, left, right, alpha](const Tensors& inputs) {
    torch::Tensor a = inputs[0].to(torch::kDouble) - given_or_zero(inputs, 2);
    torch::Tensor b = inputs[3].to(torch::kDouble);
    const torch::Tensor zero = given_or_zero(inputs, 5), scale = given_or_zero(inputs, 4);
    b = b - (right ? per_filter(zero, 2, 0) : zero);
    torch::Tensor sum = torch::matmul(left ? a.t() : a, right ? b.t() : b);
    if (is_given(inputs, 6)) sum = sum + inputs[6].to(torch::kDouble);
    const torch::Tensor y = sum * (given_or_zero(inputs, 1) * scale * alpha);
    if (!is_given(inputs, 7)) return y.to(torch::kFloat);
    return quantized(y, inputs, 7, type_of_zero(inputs, 8, inputs[0].scalar_type()), node);
  });
}

// A, B, a_scale, b_scale, a_zero, b_zero, bias.
OpPointer make_matmul_integer_to_float(OpArguments& arguments) {
  arguments.expect_inputs(4, 7);
  return quantized_op([](const Tensors& inputs) {
    const torch::Tensor a = inputs[0].to(torch::kDouble) - given_or_zero(inputs, 4);
    const torch::Tensor b = inputs[1].to(torch::kDouble) - given_or_zero(inputs, 5);
    const torch::Tensor y =
        torch::matmul(a, b) * (given_or_zero(inputs, 2) * given_or_zero(inputs, 3));
    return (y + given_or_zero(inputs, 6)).to(torch::kFloat);
  });
}

// A (plain numbers, quantised as DynamicQuantizeLinear does), B, b_scale, b_zero, bias.
OpPointer make_dynamic_quantize_matmul(OpArguments& arguments) {
  arguments.expect_inputs(3, 5);
  Node inner = arguments.node();
  inner.op = "DynamicQuantizeLinear";
  inner.inputs.resize(1);
  OpArguments own(inner, arguments.opset());
  const std::shared_ptr<const Op> quantize = make_dynamic_quantize_linear(own);
  return quantized_op([quantize](const Tensors& inputs) {
    const Tensors parts = quantize->forward({inputs[0]});
    const torch::Tensor a = parts[0].to(torch::kDouble) - parts[2].to(torch::kDouble);
    const torch::Tensor b = inputs[1].to(torch::kDouble) - given_or_zero(inputs, 3);
    const torch::Tensor y =
        torch::matmul(a, b) * (parts[1].to(torch::kDouble) * given_or_zero(inputs, 2));
    return (y + given_or_zero(inputs, 4)).to(torch::kFloat);
  });
}

}  // namespace fcp
