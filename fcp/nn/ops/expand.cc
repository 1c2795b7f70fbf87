// Operators that make a larger tensor of a smaller one, or one out of nothing.
// Tested by tests/nn/ops/shape_test.cc.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/shared.h"
#include "fcp/nn/runtime/device_waits.h"

namespace fcp {
namespace {

class GrowthOp : public Op {
 public:
  explicit GrowthOp(OpArguments& arguments) : node_(arguments.node()) {}
  double flops(const Tensors&, const Tensors&) const override { return 0; }
  BoundRule bound_rule(const std::vector<bool>& constant) const override {
    return affine_in_first(constant);
  }
  MissingRule missing_rule() const override { return MissingRule::kMoves; }

 protected:
  Node node_;
};

enum class PadMode { kConstant, kReflect, kEdge, kWrap };

// Which of `size` elements stands at `position`, where positions outside [0, size) are padding.
int64_t padding_source(int64_t position, int64_t size, PadMode mode) {
  const auto modulo = [](int64_t a, int64_t b) { return (a % b + b) % b; };
  if (mode == PadMode::kEdge || size == 1) return std::clamp<int64_t>(position, 0, size - 1);
  if (mode == PadMode::kWrap) return modulo(position, size);
  const int64_t period = 2 * (size - 1);  // there and back, either end visited once
  return std::min(modulo(position, period), period - modulo(position, period));
}

// Negative pads crop, and do so before anything is padded. Pads and value are attributes before
// opset 11 and inputs since; opset 18 adds the axes that the pads speak of, 19 the mode wrap.
class PadOp : public GrowthOp {
 public:
  explicit PadOp(OpArguments& arguments)
      : GrowthOp(arguments), from_inputs_(arguments.opset() >= 11) {
    const std::string mode = arguments.text("mode", "constant");
    const bool wraps = arguments.opset() >= 19;
    if (mode == "reflect") {
      mode_ = PadMode::kReflect;
    } else if (mode == "edge") {
      mode_ = PadMode::kEdge;
    } else if (mode == "wrap" && wraps) {
      mode_ = PadMode::kWrap;
    } else if (mode != "constant") {
      fail(describe(node_), ": attribute 'mode' is '", mode, "', expected constant, reflect",
           wraps ? ", edge or wrap" : " or edge");
    }
    if (from_inputs_) {
      arguments.expect_inputs(2, arguments.opset() >= 18 ? 4 : 3);
      return;
    }
    arguments.expect_inputs(1, 1);
    if (!arguments.has("pads")) fail(describe(node_), ": attribute 'pads' is missing");
    pads_ = arguments.integers("pads");
    value_ = arguments.number("value", 0);
  }

  Tensors forward(const Tensors& inputs) const override {
    Tensors all = inputs;
    all.resize(4);
    torch::Tensor x = all[0];
    const auto [before, after] = sides(x, all[1], all[3]);
    std::vector<int64_t> shape;
    for (int64_t i = 0; i < x.dim(); ++i) {
      const int64_t start = std::max<int64_t>(0, -before[i]);
      const int64_t length = x.size(i) - start - std::max<int64_t>(0, -after[i]);
      if (length < 0) {
        fail(describe(node_), ": pads of ", before[i], " and ", after[i], " crop more than axis ",
             i, " of ", all[0].sizes(), " has");
      }
      x = x.narrow(i, start, length);
      shape.push_back(length + std::max<int64_t>(0, before[i]) + std::max<int64_t>(0, after[i]));
    }
    const int64_t elements = checked_elements(shape, node_);
    if (mode_ != PadMode::kConstant) return {repeat_content(x, before, after)};
    if (elements == 0) return {x.new_empty(shape)};
    std::vector<int64_t> pads;  // libtorch wants them from the last axis to the first
    for (int64_t i = x.dim() - 1; i >= 0; --i) {
      pads.push_back(std::max<int64_t>(0, before[i]));
      pads.push_back(std::max<int64_t>(0, after[i]));
    }
    return {torch::constant_pad_nd(x, pads, value(all[2], x))};
  }

 private:
  // Pads before and after each axis of x.
  std::pair<std::vector<int64_t>, std::vector<int64_t>> sides(const torch::Tensor& x,
                                                              const torch::Tensor& pads_input,
                                                              const torch::Tensor& axes) const {
    const std::vector<int64_t> pads = from_inputs_ ? to_integers(pads_input, node_, "pads") : pads_;
    std::vector<int64_t> order;
    if (axes.defined()) {
      order = to_integers(axes, node_, "axes");
    } else {
      for (int64_t i = 0; i < x.dim(); ++i) order.push_back(i);
    }
    if (pads.size() != 2 * order.size()) {
      fail(describe(node_), ": has ", pads.size(), " pads for ", order.size(),
           " axes, expected two for each");
    }
    std::vector<int64_t> before(x.dim(), 0), after(x.dim(), 0);
    std::vector<bool> seen(x.dim(), false);
    for (size_t i = 0; i < order.size(); ++i) {
      const int64_t axis = normalize_axis(order[i], x.dim(), node_);
      if (seen[axis]) fail(describe(node_), ": axis ", axis, " is given twice");
      seen[axis] = true;
      before[axis] = pads[i];
      after[axis] = pads[i + order.size()];
      for (const int64_t pad : {before[axis], after[axis]}) {
        if (pad > kMaxElements || pad < -kMaxElements) {
          fail(describe(node_), ": pad ", pad, " is beyond ", kMaxElements, " elements");
        }
      }
    }
    return {before, after};
  }

  torch::Tensor repeat_content(torch::Tensor x, const std::vector<int64_t>& before,
                               const std::vector<int64_t>& after) const {
    for (int64_t i = 0; i < x.dim(); ++i) {
      if (before[i] <= 0 && after[i] <= 0) continue;
      const int64_t size = x.size(i);
      if (size == 0) fail(describe(node_), ": axis ", i, " is empty, with nothing to pad from");
      std::vector<int64_t> sources;
      for (int64_t p = -std::max<int64_t>(0, before[i]); p < size + std::max<int64_t>(0, after[i]);
           ++p) {
        sources.push_back(padding_source(p, size, mode_));
      }
      x = x.index_select(i, placed_on(torch::tensor(sources, torch::kLong), x.device()));
    }
    return x;
  }

  torch::Scalar value(const torch::Tensor& input, const torch::Tensor& x) const {
    if (!input.defined()) return value_;
    if (input.numel() != 1) {
      fail(describe(node_), ": value has shape ", input.sizes(), ", expected one number");
    }
    if (input.scalar_type() != x.scalar_type() &&
        !(input.is_floating_point() && x.is_floating_point())) {
      fail(describe(node_), ": value is ", input.scalar_type(), " but the data is ",
           x.scalar_type());
    }
    if (input.is_floating_point()) return host_value_.single(input);
    return input.item();
  }

  bool from_inputs_;
  mutable HostNumbers host_value_;
  PadMode mode_ = PadMode::kConstant;
  std::vector<int64_t> pads_;
  double value_ = 0;
};

// Broadcasts the input against a shape; a 1 in the shape keeps the input's dimension.
class ExpandOp : public GrowthOp {
 public:
  explicit ExpandOp(OpArguments& arguments) : GrowthOp(arguments) { arguments.expect_inputs(2, 2); }

  Tensors forward(const Tensors& inputs) const override {
    const std::vector<int64_t> asked = to_integers(inputs[1], node_, "shape");
    const std::vector<int64_t> shape = broadcast_shape(inputs[0].sizes(), asked, node_);
    checked_elements(shape, node_);
    return {inputs[0].expand(shape)};
  }
};

class TileOp : public GrowthOp {
 public:
  explicit TileOp(OpArguments& arguments) : GrowthOp(arguments) { arguments.expect_inputs(2, 2); }

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    const std::vector<int64_t> repeats = to_integers(inputs[1], node_, "repeats");
    if (static_cast<int64_t>(repeats.size()) != x.dim()) {
      fail(describe(node_), ": has ", repeats.size(), " repeats for an input of shape ", x.sizes());
    }
    std::vector<int64_t> shape;
    for (int64_t i = 0; i < x.dim(); ++i) {
      shape.push_back(checked_elements({x.size(i), repeats[i]}, node_));
    }
    checked_elements(shape, node_);
    return {x.repeat(repeats)};
  }
};

class ConstantOp : public GrowthOp {
 public:
  explicit ConstantOp(OpArguments& arguments) : GrowthOp(arguments) {
    arguments.expect_inputs(0, 0);
    const std::string name =
        node_.attributes.size() == 1 ? node_.attributes.begin()->first : std::string();
    const bool lists = arguments.opset() >= 12;
    if (name == "value") {
      value_ = arguments.tensor(name);
    } else if (name == "value_int" && lists) {
      value_ = torch::tensor(arguments.integer(name, 0), torch::kLong);
    } else if (name == "value_ints" && lists) {
      value_ = torch::tensor(arguments.integers(name), torch::kLong);
    } else if (name == "value_float" && lists) {
      value_ = torch::tensor(arguments.number(name, 0), torch::kFloat);
    } else if (name == "value_floats" && lists) {
      value_ = torch::tensor(arguments.numbers(name), torch::kFloat);
    } else {
      fail(describe(node_), ": has ",
           name.empty() ? concat(node_.attributes.size(), " attributes") : "'" + name + "'",
           ", expected one of value",
           lists ? ", value_int, value_ints, value_float, value_floats" : "");
    }
  }

  Tensors forward(const Tensors&) const override { return {value_}; }
  bool differentiable() const override { return false; }

 private:
  torch::Tensor value_;
};

// Every element is the one of attribute value, by default 0 in single precision.
class ConstantOfShapeOp : public GrowthOp {
 public:
  explicit ConstantOfShapeOp(OpArguments& arguments)
      : GrowthOp(arguments),
        value_(arguments.has("value") ? arguments.tensor("value")
                                      : torch::zeros({}, torch::kFloat)) {
    arguments.expect_inputs(1, 1);
    if (value_.numel() != 1) {
      fail(describe(node_), ": value has shape ", value_.sizes(), ", expected one number");
    }
  }

  Tensors forward(const Tensors& inputs) const override {
    const std::vector<int64_t> shape = to_integers(inputs[0], node_, "shape");
    checked_elements(shape, node_);
    return {value_.reshape({}).expand(shape)};
  }
  BoundRule bound_rule(const std::vector<bool>&) const override { return BoundRule::kNone; }
  bool differentiable() const override { return false; }

 private:
  torch::Tensor value_;
};

}  // namespace

OpPointer make_pad(OpArguments& arguments) { return std::make_unique<PadOp>(arguments); }
OpPointer make_expand(OpArguments& arguments) { return std::make_unique<ExpandOp>(arguments); }
OpPointer make_tile(OpArguments& arguments) { return std::make_unique<TileOp>(arguments); }
OpPointer make_constant(OpArguments& arguments) { return std::make_unique<ConstantOp>(arguments); }
OpPointer make_constant_of_shape(OpArguments& arguments) {
  return std::make_unique<ConstantOfShapeOp>(arguments);
}

}  // namespace fcp
