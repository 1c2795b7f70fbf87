// Quantisation: QuantizeLinear, round(x / scale) + zero point, saturated to 4, 8 or 16 bits, or
// x / scale rounded to a float of 8 or 4 bits;
// DequantizeLinear, (q − zero point) · scale; and DynamicQuantizeLinear, which takes scale and zero
// point from the range of its input, 0 included. One scale for the tensor, one per place along an
// axis, or one per block of that axis. Halves round to the even number.
//
// Intervals: with constant positive scales neither ever falls. Rounding has no gradient.
// Cost: linear. Reference: ONNX operator specification, versions 10 to 24.
// Tested by tests/nn/ops/quantize_test.cc.
#include "fcp/nn/ops/quantize.h"

#include <optional>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/nn/kernels/cpu/quantized_bytes.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/shared.h"
#include "fcp/nn/ops/types.h"
#include "fcp/nn/runtime/device_waits.h"
#include "fcp/nn/runtime/element_types.h"

namespace fcp {

torch::Tensor saturate(const torch::Tensor& x, torch::ScalarType type, const Node& node) {
  switch (type) {
    case torch::kByte:
      return x.clamp(0, 255).to(type);
    case torch::kChar:
      return x.clamp(-128, 127).to(type);
    case torch::kShort:
      return x.clamp(-32768, 32767).to(type);
    default:
      fail(describe(node), ": quantises to ", type,
           ", expected int8, uint8, int16, uint16, a type of 4 bits or an 8-bit float");
  }
}

torch::Tensor align_to_axis(const torch::Tensor& parameter, const torch::Tensor& x, int64_t axis,
                            int64_t block, const Node& node, const char* what) {
  if (parameter.numel() == 1) return parameter.reshape({});
  const int64_t at = normalize_axis(axis, x.dim(), node);
  if (block > 0) {
    expect_rank(parameter, x.dim(), x.dim(), node, what);
    const torch::Tensor wide = repeat_each(parameter, block, at);
    if (wide.size(at) < x.size(at)) {
      fail(describe(node), ": ", what, " has shape ", shape_text(parameter.sizes()),
           ", too few blocks of ", block, " for ", shape_text(x.sizes()));
    }
    return wide.narrow(at, 0, x.size(at));
  }
  expect_vector(parameter, x.size(at), node, what);
  std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
  shape[static_cast<size_t>(at)] = -1;
  return parameter.reshape(shape);
}

namespace {

class QuantizationOp : public Op {
 public:
  explicit QuantizationOp(OpArguments& arguments)
      : node_(arguments.node()),
        axis_(arguments.opset() >= 13 ? arguments.integer("axis", 1) : 1),
        block_(arguments.opset() >= 21 ? arguments.integer("block_size", 0) : 0) {
    arguments.expect_inputs(2, 3);
  }
  BoundRule bound_rule(const std::vector<bool>& constant) const override {
    return affine_in_first(constant) == BoundRule::kAffine ? BoundRule::kInterval
                                                           : BoundRule::kNone;
  }

 protected:
  torch::Tensor scale(const Tensors& inputs) const {
    expect_floating(inputs[1], node_, "scale");
    return align_to_axis(inputs[1], inputs[0], axis_, block_, node_, "scale");
  }
  bool has_zero(const Tensors& inputs) const { return inputs.size() > 2 && inputs[2].defined(); }
  torch::Tensor zero(const Tensors& inputs, const torch::Tensor& like) const {
    return align_to_axis(inputs[2], inputs[0], axis_, block_, node_, "zero point")
        .to(like.device(), like.scalar_type());
  }
  // One scale and zero point for all numbers, which the loops of quantized_bytes.h take; nothing
  // for other numbers.
  std::optional<ByteStep> byte_step(const Tensors& inputs) const {
    const bool zeros = has_zero(inputs);
    if (!takes_byte_loops(inputs[0]) || inputs[1].numel() != 1 || !inputs[1].is_cpu() ||
        inputs[1].scalar_type() != torch::kFloat || (zeros && inputs[2].numel() != 1)) {
      return std::nullopt;
    }
    return ByteStep{inputs[1].item<float>(), zeros ? inputs[2].item<int32_t>() : 0};
  }
  void expect_positive_scale(const torch::Tensor& scale) const {
    for (const double each : host_scale_.of(scale)) {
      if (each > 0) continue;
      fail(describe(node_), ": has a scale that is not positive, for which there are no bounds");
    }
  }

  Node node_;
  mutable HostNumbers host_scale_;

 private:
  int64_t axis_;
  int64_t block_;
};

class QuantizeOp : public QuantizationOp {
 public:
  explicit QuantizeOp(OpArguments& arguments) : QuantizationOp(arguments) {
    if (arguments.opset() >= 19) saturates_ = arguments.integer("saturate", 1) != 0;
    if (arguments.opset() >= 23) arguments.ignore("precision");  // no less than the input's here
    if (arguments.opset() >= 21) {
      type_ = arguments.integer("output_dtype", 0);
      if (type_ != 0) type_of_number(type_, node_);  // it must be a type
    }
  }
  Tensors forward(const Tensors& inputs) const override {
    if (const auto type = byte_type(inputs)) {
      if (const auto step = byte_step(inputs)) return {quantized_bytes(inputs[0], *step, *type)};
    }
    const torch::Tensor x = inputs[0].is_floating_point() ? inputs[0] : inputs[0].to(torch::kFloat);
    torch::Tensor q = x / scale(inputs).to(x.scalar_type());
    if (is_narrow_float(type_)) return {to_narrow(q, type_, saturates_)};
    q = torch::round(q);
    if (has_zero(inputs)) q = q + zero(inputs, q);
    if (type_ == kOnnxUint4 || type_ == kOnnxInt4) return {to_narrow(q, type_, true)};
    const torch::ScalarType named =
        type_ == 0 ? torch::kByte : scalar_type(type_of_number(type_, node_));
    const torch::ScalarType type = has_zero(inputs) ? inputs[2].scalar_type() : named;
    if (type == torch::kInt) return {to_narrow(q, kOnnxUint16, true)};
    return {saturate(q, type, node_)};
  }
  bool differentiable() const override { return false; }

  // The walk's own quotients may round to the other side of a half: one step more either way.
  std::vector<Range> interval(const std::vector<Range>& inputs, double unit) const override {
    expect_positive_scale(inputs[1].lower);
    std::vector<Range> ranges = inputs;
    const torch::Tensor size = torch::maximum(inputs[0].lower.abs(), inputs[0].upper.abs());
    ranges[0] =
        open_ends({inputs[0].lower - size * (4 * unit), inputs[0].upper + size * (4 * unit)});
    return Op::interval(ranges, unit);
  }

 private:
  // uint8 or int8, of float32 numbers; nothing where it is another type.
  std::optional<torch::ScalarType> byte_type(const Tensors& inputs) const {
    const bool zeros = has_zero(inputs);
    if (inputs[0].scalar_type() != torch::kFloat || (type_ != 0 && !zeros)) return std::nullopt;
    const torch::ScalarType type = zeros ? inputs[2].scalar_type() : torch::kByte;
    const bool byte = type == torch::kByte || type == torch::kChar;
    return byte && !is_narrow(type_) ? std::optional(type) : std::nullopt;
  }

  int64_t type_ = 0;  // ONNX's number; 0: that of the zero point
  bool saturates_ = true;
};

class DequantizeOp : public QuantizationOp {
 public:
  explicit DequantizeOp(OpArguments& arguments)
      : QuantizationOp(arguments), takes_floats_(arguments.opset() >= 19) {
    if (arguments.opset() >= 23) {
      const int64_t type = arguments.integer("output_dtype", 0);
      if (type != 0) type_ = scalar_type(type_of_number(type, node_));
    }
  }
  Tensors forward(const Tensors& inputs) const override {
    if (inputs[0].is_floating_point() && !takes_floats_) {
      fail(describe(node_), ": x is ", inputs[0].scalar_type(), ", expected integers");
    }
    const bool floats = inputs[0].is_floating_point() || (type_ && *type_ != torch::kFloat);
    if (const auto step = floats ? std::nullopt : byte_step(inputs)) {
      return {dequantized_bytes(inputs[0], *step)};
    }
    const torch::Tensor by = scale(inputs);
    torch::Tensor q = inputs[0].is_floating_point() ? inputs[0] : inputs[0].to(torch::kInt);
    if (has_zero(inputs)) q = q - zero(inputs, q);
    const torch::Tensor x = q.to(by.device(), by.scalar_type()) * by;
    return {type_ ? x.to(*type_) : x};
  }
  bool differentiable() const override { return false; }

  std::vector<Range> interval(const std::vector<Range>& inputs, double unit) const override {
    expect_positive_scale(inputs[1].lower);
    std::vector<Range> result = Op::interval(inputs, unit);
    const auto slack = [&](const torch::Tensor& end) { return end.abs() * (2 * unit); };
    return {{result[0].lower - slack(result[0].lower), result[0].upper + slack(result[0].upper)}};
  }

 private:
  bool takes_floats_;  // those of 8 and 4 bits, held in single precision
  std::optional<torch::ScalarType> type_;
};

// To uint8: scale = (max(x, 0) − min(x, 0)) / 255 over the whole tensor, all rows together.
class DynamicQuantizeOp : public Op {
 public:
  explicit DynamicQuantizeOp(OpArguments& arguments) : node_(arguments.node()) {
    arguments.expect_inputs(1, 1);
  }
  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    expect_floating(x, node_, "x");
    if (x.numel() == 0) fail(describe(node_), ": x is empty");
    const torch::Tensor least = x.min().clamp_max(0), most = x.max().clamp_min(0);
    const torch::Tensor width = (most - least) / 255;
    const torch::Tensor scale = torch::where(width == 0, torch::ones_like(width), width);
    const torch::Tensor zero = torch::round(-least / scale).clamp(0, 255);
    const torch::Tensor q = torch::round(x / scale) + zero;
    return {saturate(q, torch::kByte, node_), scale, zero.to(torch::kByte)};
  }
  bool differentiable() const override { return false; }

 private:
  Node node_;
};

}  // namespace

OpPointer make_quantize_linear(OpArguments& arguments) {
  return std::make_unique<QuantizeOp>(arguments);
}

OpPointer make_dequantize_linear(OpArguments& arguments) {
  return std::make_unique<DequantizeOp>(arguments);
}

OpPointer make_dynamic_quantize_linear(OpArguments& arguments) {
  return std::make_unique<DynamicQuantizeOp>(arguments);
}

}  // namespace fcp
