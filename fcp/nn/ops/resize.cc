// Resize and its ancestor Upsample: each place of the output takes the nearest value of the input,
// or interpolates between its two (linear) or four (cubic) neighbours, as resize_coordinates.h says
// which. Axes are
// independent, so they are done one after the other, by gathering. libtorch does the cases where
// it computes exactly the same.
//
// Cost: linear in the largest of the tensors between input and output.
// Reference: ONNX operator specification, Upsample 7 and 9, Resize 10, 11, 13, 18, 19.
// Tested by tests/nn/ops/resize_test.cc.

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/resize_coordinates.h"
#include "fcp/nn/ops/shared.h"
#include "fcp/nn/runtime/device_waits.h"

namespace fcp {
namespace {

class Resize : public Op {
 public:
  explicit Resize(OpArguments& arguments) : node_(arguments.node()), opset_(arguments.opset()) {
    if (opset_ < 10) fail(describe(node_), ": Resize exists from opset 10 on, found ", opset_);
    read_mode(arguments);
    if (opset_ == 10) {
      arguments.expect_inputs(2, 2);
      return;
    }
    arguments.expect_inputs(1, 4);
    coordinates_ = parse_coordinates(arguments.text("coordinate_transformation_mode", "half_pixel"),
                                     opset_, node_);
    rounding_ = parse_rounding(arguments.text("nearest_mode", "round_prefer_floor"), node_);
    options_.a = arguments.number("cubic_coeff_a", -0.75);
    options_.exclude_outside = arguments.integer("exclude_outside", 0) != 0;
    arguments.ignore("extrapolation_value");  // applies only to tf_crop_and_resize
    if (opset_ >= 18) read_opset_18(arguments);
  }

  // Upsample: the scales are an attribute before opset 9 and an input in opset 9.
  static OpPointer upsample(OpArguments& arguments) {
    auto op = std::unique_ptr<Resize>(new Resize(arguments.node(), arguments.opset()));
    if (op->opset_ < 7 || op->opset_ > 9) {
      fail(describe(op->node_), ": Upsample exists in opsets 7 to 9, found ", op->opset_);
    }
    op->is_upsample_ = true;
    op->read_mode(arguments);
    arguments.expect_inputs(op->opset_ < 9 ? 1 : 2, op->opset_ < 9 ? 1 : 2);
    if (op->opset_ < 9) op->fixed_scales_ = arguments.numbers("scales");
    return op;
  }

  Tensors forward(const Tensors& inputs) const override {
    return {run(inputs, [](const torch::Tensor& a, const torch::Tensor& b,
                           const torch::Tensor& weight) { return torch::lerp(a, b, weight); })};
  }

  BoundRule bound_rule(const std::vector<bool>& constant) const override {
    return affine_in_first(constant);
  }
  // lerp computes a + w(b − a), whose rounding may let the result fall when a rises; this may not.
  std::vector<Range> interval(const std::vector<Range>& inputs, double) const override {
    Tensors arguments;
    for (const Range& input : inputs) arguments.push_back(input.lower);
    const auto mix = [](const torch::Tensor& a, const torch::Tensor& b,
                        const torch::Tensor& weight) { return a * (1 - weight) + b * weight; };
    if (cubic_) return {cubic_interval(inputs)};
    const torch::Tensor lower = run(arguments, mix);
    arguments[0] = inputs[0].upper;
    return {{lower, run(arguments, mix)}};
  }
  // Weights come from coordinates, whose error grows with the length of the axis.
  double roundings(const Tensors& inputs) const override {
    if (!linear_ && !cubic_) return 0;
    double units = 16;
    for (const ResizedAxis& axis : plan(inputs)) {
      if (!axis.unchanged()) units += 8 * static_cast<double>(std::max(axis.input, axis.output));
    }
    return units;
  }

 private:
  using Mix = torch::Tensor (*)(const torch::Tensor&, const torch::Tensor&, const torch::Tensor&);

  torch::Tensor run(const Tensors& inputs, Mix mix) const {
    const torch::Tensor& x = inputs[0];
    if (!x.defined()) fail(describe(node_), ": X is absent");
    if (linear_ || cubic_) expect_floating(x, node_, "X");
    const std::vector<ResizedAxis> axes = plan(inputs);
    const torch::Tensor fast = fast_path(x, axes);
    if (fast.defined()) return fast;
    torch::Tensor y = x;
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i].unchanged()) continue;
      const auto dim = static_cast<int64_t>(i);
      if (cubic_) {
        y = cubic_along(y, y, dim, axes[i]);
        continue;
      }
      y = linear_ ? linear_along(y, dim, axes[i], mix) : nearest_along(y, dim, axes[i]);
    }
    return y;
  }

  Resize(const Node& node, int64_t opset) : node_(node), opset_(opset) {}

  void read_mode(OpArguments& arguments) {
    const std::string mode = arguments.text("mode", "nearest");
    const bool known = mode == "nearest" || mode == "linear" || (mode == "cubic" && opset_ > 10);
    if (!known) {
      fail(describe(node_), ": mode '", mode, "' is not supported, expected nearest, linear",
           opset_ > 10 ? " or cubic" : "");
    }
    linear_ = mode == "linear";
    cubic_ = mode == "cubic";
  }

  void read_opset_18(OpArguments& arguments) {
    if (arguments.integer("antialias", 0) != 0) {
      fail(describe(node_), ": antialias = 1 is not supported, expected 0");
    }
    const std::string policy = arguments.text("keep_aspect_ratio_policy", "stretch");
    if (policy != "stretch") {
      fail(describe(node_), ": keep_aspect_ratio_policy '", policy,
           "' is not supported, expected stretch");
    }
    axes_ = arguments.integers("axes");
  }

  // The scales the node gives, or nothing when it gives sizes.
  std::vector<float> given_scales(const Tensors& inputs) const {
    if (is_upsample_ && opset_ < 9) return fixed_scales_;
    const size_t position = opset_ <= 10 ? 1 : 2;
    if (inputs.size() <= position || !inputs[position].defined()) return {};
    expect_floating(inputs[position], node_, "scales");
    const std::vector<double> scales = host_scales_.of(inputs[position]);
    return {scales.begin(), scales.end()};
  }

  std::vector<ResizedAxis> plan(const Tensors& inputs) const {
    const torch::Tensor& x = inputs[0];
    const std::vector<float> scales = given_scales(inputs);
    std::vector<int64_t> sizes;
    if (opset_ > 10 && inputs.size() > 3 && inputs[3].defined()) {
      sizes = to_integers(inputs[3], node_, "sizes");
    }
    if (scales.empty() == sizes.empty()) {
      fail(describe(node_), ": ", scales.empty() ? "neither scales nor" : "both scales and",
           " sizes are given, expected one of them");
    }
    std::vector<int64_t> named = axes_;
    if (named.empty()) {
      for (int64_t i = 0; i < x.dim(); ++i) named.push_back(i);
    }
    if (std::max(scales.size(), sizes.size()) != named.size()) {
      fail(describe(node_), ": has ", std::max(scales.size(), sizes.size()), " ",
           scales.empty() ? "sizes" : "scales", ", expected ", named.size());
    }
    std::vector<ResizedAxis> plan(static_cast<size_t>(x.dim()));
    for (size_t i = 0; i < plan.size(); ++i) {
      plan[i].input = plan[i].output = x.size(static_cast<int64_t>(i));
    }
    for (size_t i = 0; i < named.size(); ++i) {
      ResizedAxis& axis = plan[static_cast<size_t>(normalize_axis(named[i], x.dim(), node_))];
      if (sizes.empty()) {
        set_scale(axis, scales[i]);
      } else {
        axis.output = sizes[i];
        axis.scale = static_cast<float>(axis.output) / static_cast<float>(axis.input);
      }
    }
    check_plan(plan);
    return plan;
  }

  // output = floor(input · scale), in float as everywhere else.
  void set_scale(ResizedAxis& axis, float scale) const {
    const float size = std::floor(static_cast<float>(axis.input) * scale);
    if (!(scale >= (is_upsample_ ? 1.0f : 0.0f)) || !(size <= static_cast<float>(kMaxElements))) {
      fail(describe(node_), ": scale ", scale, " of an axis of size ", axis.input, ", expected ",
           is_upsample_ ? "at least 1" : "a positive number", " and a tensor of at most ",
           kMaxElements, " elements");
    }
    axis.scale = scale;
    axis.output = static_cast<int64_t>(size);
  }

  // Axes are resized in turn, so the largest tensor in between has the larger of both sizes.
  void check_plan(const std::vector<ResizedAxis>& plan) const {
    std::vector<int64_t> largest;
    for (size_t i = 0; i < plan.size(); ++i) {
      const ResizedAxis& axis = plan[i];
      if (!axis.unchanged() && (axis.input < 1 || axis.output < 1)) {
        fail(describe(node_), ": cannot resize axis ", i, " from ", axis.input, " to ", axis.output,
             " places");
      }
      const bool batch = i == 0 && axis.unchanged();
      largest.push_back(batch ? 1 : std::max(axis.input, axis.output));
    }
    checked_elements(largest, node_);
  }

  torch::Tensor nearest_along(const torch::Tensor& x, int64_t dim, const ResizedAxis& axis) const {
    return gather(x, dim, nearest_places(axis, coordinates_, rounding_));
  }

  torch::Tensor linear_along(const torch::Tensor& x, int64_t dim, const ResizedAxis& axis,
                             Mix mix) const {
    const LinearPlaces places = linear_places(axis, coordinates_);
    std::vector<int64_t> broadcast(static_cast<size_t>(x.dim()), 1);
    broadcast[static_cast<size_t>(dim)] = axis.output;
    const torch::Tensor weight = torch::tensor(places.weight, torch::kDouble);
    return mix(gather(x, dim, places.below), gather(x, dim, places.above),
               weight.to(x.options()).view(broadcast));
  }

  // Neighbours with weights above 0 are taken from one tensor, the others from another.
  torch::Tensor cubic_along(const torch::Tensor& rising, const torch::Tensor& falling, int64_t dim,
                            const ResizedAxis& axis) const {
    const CubicPlaces places = cubic_places(axis, coordinates_, options_);
    std::vector<int64_t> broadcast(static_cast<size_t>(rising.dim()), 1);
    broadcast[static_cast<size_t>(dim)] = axis.output;
    torch::Tensor sum;
    for (size_t k = 0; k < 4; ++k) {
      const torch::Tensor weight =
          torch::tensor(places.weight[k], torch::kDouble).to(rising.options()).view(broadcast);
      torch::Tensor part = gather(rising, dim, places.place[k]) * weight.clamp_min(0);
      part = part + gather(falling, dim, places.place[k]) * weight.clamp_max(0);
      sum = sum.defined() ? sum + part : part;
    }
    return sum;
  }

  Range cubic_interval(const std::vector<Range>& inputs) const {
    Tensors arguments;
    for (const Range& input : inputs) arguments.push_back(input.lower);
    const std::vector<ResizedAxis> axes = plan(arguments);
    Range range = inputs[0];
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i].unchanged()) continue;
      const auto dim = static_cast<int64_t>(i);
      range = {cubic_along(range.lower, range.upper, dim, axes[i]),
               cubic_along(range.upper, range.lower, dim, axes[i])};
    }
    return range;
  }

  static torch::Tensor gather(const torch::Tensor& x, int64_t dim,
                              const std::vector<int64_t>& indices) {
    return x.index_select(dim, placed_on(torch::tensor(indices, torch::kLong), x.device()));
  }

  // libtorch's own upsampling of [N, C, …], or an undefined tensor where it would differ.
  torch::Tensor fast_path(const torch::Tensor& x, const std::vector<ResizedAxis>& axes) const {
    if (cubic_ || x.dim() < 3 || x.dim() > 5 || !x.is_floating_point() || x.numel() == 0) return {};
    for (size_t i = 0; i < axes.size(); ++i) {
      if (i < 2 ? !axes[i].unchanged() : !libtorch_agrees(axes[i])) return {};
    }
    std::vector<int64_t> sizes;
    std::array<double, 3> scale = {1, 1, 1};
    for (size_t i = 2; i < axes.size(); ++i) {
      sizes.push_back(axes[i].output);
      scale[i - 2] = static_cast<double>(axes[i].scale);
    }
    const torch::IntArrayRef size = sizes;  // a vector would make the calls ambiguous
    const bool corners = coordinates_ == Coordinates::kAlignCorners;
    if (size.size() == 1) {
      return linear_ ? torch::upsample_linear1d(x, size, corners, scale[0])
                     : torch::upsample_nearest1d(x, size, scale[0]);
    }
    if (size.size() == 2) {
      return linear_ ? torch::upsample_bilinear2d(x, size, corners, scale[0], scale[1])
                     : torch::upsample_nearest2d(x, size, scale[0], scale[1]);
    }
    return linear_ ? torch::upsample_trilinear3d(x, size, corners, scale[0], scale[1], scale[2])
                   : torch::upsample_nearest3d(x, size, scale[0], scale[1], scale[2]);
  }

  bool libtorch_agrees(const ResizedAxis& axis) const {
    if (linear_) {
      return coordinates_ == Coordinates::kAlignCorners ||
             coordinates_ == Coordinates::kHalfPixel ||
             (coordinates_ == Coordinates::kPytorchHalfPixel && axis.output > 1);
    }
    // libtorch takes floor(x · (1 / scale)), which is exact for powers of two. Halves of pixels
    // never tie when an axis grows by a whole factor, so all of these give place x / scale.
    const bool power_of_two = axis.scale == 1 || axis.scale == 2 || axis.scale == 4;
    const bool rounds = rounding_ == Rounding::kPreferFloor || rounding_ == Rounding::kPreferCeil;
    const bool floors = rounding_ == Rounding::kFloor || rounding_ == Rounding::kSimple;
    const bool half = coordinates_ == Coordinates::kHalfPixel;
    return power_of_two && axis.output == axis.input * static_cast<int64_t>(axis.scale) &&
           ((coordinates_ == Coordinates::kAsymmetric && floors) || (half && rounds));
  }

  Node node_;
  int64_t opset_;
  bool is_upsample_ = false;
  bool linear_ = false, cubic_ = false;
  CubicOptions options_;
  Coordinates coordinates_ = Coordinates::kAsymmetric;
  Rounding rounding_ = Rounding::kSimple;
  std::vector<int64_t> axes_;
  std::vector<float> fixed_scales_;
  mutable HostNumbers host_scales_;
};

}  // namespace

OpPointer make_resize(OpArguments& arguments) { return std::make_unique<Resize>(arguments); }

OpPointer make_upsample(OpArguments& arguments) { return Resize::upsample(arguments); }

// GridSample: an image looked up at places that another tensor says, interpolated between pixels,
// as spatial transformers do. libtorch computes it as ONNX defines it. Gradients flow to the image;
// no bounds.
// Cost: a few products per number of the output. Reference: ONNX operator specification, GridSample
// 16, 20 and 22. Tested by tests/parity/op_cases_test.cc.

namespace {

// The place of a name in a list, which is libtorch's number for it.
int64_t choice(const std::string& name, const std::vector<std::string>& names, const Node& node,
               const char* what) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<int64_t>(i);
  }
  fail(describe(node), ": ", what, " '", name, "' is not known");
}

class GridSampleOp : public Op {
 public:
  explicit GridSampleOp(OpArguments& arguments) : node_(arguments.node()) {
    arguments.expect_inputs(2, 2);
    std::string mode = arguments.text("mode", arguments.opset() < 20 ? "bilinear" : "linear");
    if (mode == "linear") mode = "bilinear";
    if (mode == "cubic") mode = "bicubic";
    mode_ = choice(mode, {"bilinear", "nearest", "bicubic"}, node_, "mode");
    padding_ = choice(arguments.text("padding_mode", "zeros"), {"zeros", "border", "reflection"},
                      node_, "padding_mode");
    corners_ = arguments.integer("align_corners", 0) != 0;
  }

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor &x = inputs[0], &grid = inputs[1];
    expect_floating(x, node_, "X");
    expect_type_of(x, grid, node_, "grid");
    expect_rank(x, 4, mode_ == 2 ? 4 : 5, node_, "X");
    expect_rank(grid, x.dim(), x.dim(), node_, "grid");
    if (grid.size(0) != x.size(0) || grid.size(-1) != x.dim() - 2) {
      fail(describe(node_), ": grid has shape ", shape_text(grid.sizes()), ", X ",
           shape_text(x.sizes()), "; expected the same rows and ", x.dim() - 2,
           " coordinates at the end");
    }
    return {torch::grid_sampler(x, grid, mode_, padding_, corners_)};
  }

 private:
  Node node_;
  int64_t mode_, padding_;
  bool corners_;
};

}  // namespace

OpPointer make_grid_sample(OpArguments& arguments) {
  return std::make_unique<GridSampleOp>(arguments);
}

}  // namespace fcp
