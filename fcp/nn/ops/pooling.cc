// Max and average pooling in one to three spatial dimensions, their global forms, and MaxUnpool.
//
// Padding never counts for the maximum, and counts for the average only with count_include_pad.
// With ceil_mode the last window may reach beyond the padded input; the places beyond never count,
// and a window that would begin in the padding at the end is dropped (as in PyTorch, and as the
// specification says since opset 19). libtorch does the common cases. The others are padded by
// hand first; the average is then a sum along one axis after the other, because a box is
// separable, divided by the number of places that count.
//
// Cost: outputs · kernel. Reference: ONNX operator specification.
// Tested by tests/nn/ops/pooling_test.cc.
#include <algorithm>
#include <limits>
#include <vector>

#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/nn/kernels/cpu/channel_scale.h"
#include "fcp/nn/kernels/cpu/channel_windows.h"
#include "fcp/nn/kernels/cpu/gradient_of.h"
#include "fcp/nn/kernels/cpu/own_conv.h"
#include "fcp/nn/kernels/cpu/row_product.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/index.h"
#include "fcp/nn/ops/shared.h"
#include "fcp/nn/ops/window.h"

namespace fcp {
namespace {

// Both ends of every axis are padded alike and by at most half the kernel, which is what
// libtorch's own padding can do.
bool libtorch_pads(const Window& window) {
  for (size_t i = 0; i < window.axes(); ++i) {
    if (window.begins[i] != window.ends[i] || 2 * window.begins[i] > window.kernel[i]) return false;
  }
  return true;
}

bool is_dilated(const Window& window) {
  return std::any_of(window.dilations.begin(), window.dilations.end(),
                     [](int64_t dilation) { return dilation != 1; });
}

class Pool : public Op {
 public:
  explicit Pool(OpArguments& arguments, bool has_dilations)
      : node_(arguments.node()),
        attributes_(read_window(arguments, has_dilations)),
        ceil_(arguments.opset() >= 10 && arguments.integer("ceil_mode", 0) != 0) {
    arguments.expect_inputs(1, 1);
    if (attributes_.kernel.empty() || attributes_.kernel.size() > 3) {
      fail(describe(node_), ": kernel_shape is ", shape_text(attributes_.kernel),
           ", expected one to three numbers");
    }
    make_window(attributes_, attributes_.kernel, node_);
  }

  // X [N, C, …].
  Tensors forward(const Tensors& inputs) const override {
    expect_floating(inputs[0], node_, "X");
    const auto [window, positions] = placed(inputs[0]);
    return {pool(inputs[0], window, positions)};
  }

  double flops(const Tensors&, const Tensors& outputs) const override {
    return static_cast<double>(outputs[0].numel()) * taps();
  }

 protected:
  struct Placed {
    Window window;
    std::vector<int64_t> positions;
  };

  // The window on this input and how often it fits along each axis, checked.
  Placed placed(const torch::Tensor& x) const {
    const auto rank = static_cast<int64_t>(attributes_.kernel.size()) + 2;
    expect_rank(x, rank, rank, node_, "X");
    const std::vector<int64_t> spatial = spatial_shape(x);
    Window window = make_window(attributes_, attributes_.kernel, node_);
    apply_auto_pad(window, attributes_.auto_pad, spatial);
    const std::vector<int64_t> positions = window_positions(window, spatial, ceil_, node_);
    std::vector<int64_t> shape = positions;
    shape.insert(shape.begin(), {x.size(0), x.size(1)});
    check_sample(shape, node_);
    for (size_t i = 0; i < window.axes(); ++i) {
      const std::vector<int64_t> inside = places(window, i, positions[i], 0, spatial[i]);
      if (std::find(inside.begin(), inside.end(), 0) != inside.end()) {
        fail(describe(node_), ": a window lies wholly in the padding ", window.begins[i], " and ",
             window.ends[i], " along spatial axis ", i);
      }
    }
    return {window, positions};
  }

  double taps() const {
    double product = 1;
    for (const int64_t size : attributes_.kernel) product *= static_cast<double>(size);
    return product;
  }

  virtual torch::Tensor pool(const torch::Tensor& x, const Window& window,
                             const std::vector<int64_t>& positions) const = 0;

  // For each position of the window along an axis, how many of its places lie in [low, high).
  static std::vector<int64_t> places(const Window& window, size_t axis, int64_t positions,
                                     int64_t low, int64_t high) {
    std::vector<int64_t> counts(static_cast<size_t>(positions));
    const int64_t d = window.dilations[axis];
    for (int64_t i = 0; i < positions; ++i) {
      const int64_t start = i * window.strides[axis] - window.begins[axis];
      // Taps start + t·d with low <= start + t·d < high and 0 <= t < kernel.
      const int64_t first = start >= low ? 0 : (low - start + d - 1) / d;
      const int64_t last = start >= high ? 0 : (high - start + d - 1) / d;
      const int64_t end = std::min(last, window.kernel[axis]);
      counts[static_cast<size_t>(i)] = std::max<int64_t>(0, end - first);
    }
    return counts;
  }

  // Pads so that all positions of the window fit exactly, without any rounding of sizes.
  torch::Tensor pad_to_fit(const torch::Tensor& x, const Window& window,
                           const std::vector<int64_t>& positions, double value) const {
    std::vector<int64_t> ends(window.axes());
    for (size_t i = 0; i < window.axes(); ++i) {
      const int64_t needed = (positions[i] - 1) * window.strides[i] + window.reach(i);
      ends[i] = needed - x.size(static_cast<int64_t>(i) + 2) - window.begins[i];
    }
    return pad_spatial(x, window.begins, ends, value, node_);  // a negative end crops
  }

  Node node_;
  WindowAttributes attributes_;
  bool ceil_;
};

class MaxPool : public Pool {
 public:
  explicit MaxPool(OpArguments& arguments) : Pool(arguments, arguments.opset() >= 10) {
    columns_first_ = arguments.integer("storage_order", 0) != 0;
    wants_indices_ = node_.outputs.size() > 1 && !node_.outputs[1].empty();
  }

  // Of quantised numbers as they are, or in single precision, which holds them.
  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    const torch::ScalarType type = x.scalar_type();
    const bool quantised = type == torch::kByte || type == torch::kChar;
    if (quantised && x.is_cpu() && x.dim() <= 4 && x.numel() > 0 && !wants_indices_) {
      auto [window, positions] = placed(x);
      if (!is_dilated(window)) return {largest_bytes(x, window, positions)};
    }
    const Tensors plain = {quantised ? inputs[0].to(torch::kFloat) : inputs[0]};
    Tensors outputs = Pool::forward(plain);
    if (quantised) outputs[0] = outputs[0].to(type);
    if (wants_indices_) outputs.push_back(indices(plain[0].detach()));
    return outputs;
  }

  // Indices count through all rows.
  bool batch_free(const Tensors&, const std::vector<bool>&) const override {
    return !wants_indices_;
  }

  BoundRule bound_rule(const std::vector<bool>&) const override {
    return wants_indices_ ? BoundRule::kNone : BoundRule::kLargest;
  }

  // The places of each window side by side, padding as −∞.
  torch::Tensor candidates(const Tensors& inputs) const override {
    const auto [window, positions] = placed(inputs[0]);
    const double lowest = -std::numeric_limits<double>::infinity();
    torch::Tensor x = pad_to_fit(inputs[0], window, positions, lowest);
    for (size_t i = 0; i < window.axes(); ++i) {
      x = x.unfold(static_cast<int64_t>(i) + 2, window.reach(i), window.strides[i])
              .slice(-1, 0, window.reach(i), window.dilations[i]);
    }
    return x.flatten(-static_cast<int64_t>(window.axes()));
  }

 private:
  // Where each window's largest number lies in X, all of it flattened; the first of equal ones.
  torch::Tensor indices(const torch::Tensor& x) const {
    const auto [window, positions] = placed(x);
    const double lowest = -std::numeric_limits<double>::infinity();
    const torch::Tensor padded = pad_to_fit(x.contiguous(), window, positions, lowest);
    const std::vector<int64_t> none(window.axes(), 0);
    torch::Tensor at = best_places(padded, window, none);  // in a plane of `padded`
    const std::vector<int64_t> sizes = spatial_shape(x);
    torch::Tensor found = torch::zeros_like(at);
    int64_t step = 1;
    for (size_t i = window.axes(); i-- > 0;) {
      const int64_t size = padded.size(static_cast<int64_t>(i) + 2);
      const torch::Tensor place = at.remainder(size) - window.begins[i];
      at = at.div(size, "floor");
      found = found + place * (columns_first_ ? product(sizes, 0, i) : step);
      step *= sizes[i];
    }
    std::vector<int64_t> view(static_cast<size_t>(x.dim()), 1);
    view[0] = x.size(0);
    view[1] = x.size(1);
    return found + (torch::arange(x.size(0) * x.size(1), found.options()) * step).view(view);
  }

  // One spatial axis is an image of one row.
  static torch::Tensor largest_bytes(const torch::Tensor& x, Window& window,
                                     std::vector<int64_t>& positions) {
    const bool line = x.dim() == 3;
    if (line) {
      for (auto* each : {&window.kernel, &window.strides, &window.dilations, &positions}) {
        each->insert(each->begin(), 1);
      }
      for (auto* each : {&window.begins, &window.ends}) each->insert(each->begin(), 0);
    }
    const ConvPlan plan = {window.strides, window.dilations, window.begins,
                           window.ends,    positions,        1};
    const torch::Tensor y =
        largest_in_channel_windows(line ? x.unsqueeze(2) : x, window.kernel, plan);
    return line ? y.squeeze(2) : y;
  }

  static int64_t product(const std::vector<int64_t>& sizes, size_t first, size_t last) {
    int64_t result = 1;
    for (size_t i = first; i < last; ++i) result *= sizes[i];
    return result;
  }

  static torch::Tensor best_places(const torch::Tensor& x, const Window& window,
                                   const std::vector<int64_t>& pads) {
    const auto& [kernel, strides, dilations, begins, ends] = window;
    if (kernel.size() == 3) {
      return std::get<1>(torch::max_pool3d_with_indices(x, kernel, strides, pads, dilations));
    }
    if (kernel.size() == 2) {
      return std::get<1>(torch::max_pool2d_with_indices(x, kernel, strides, pads, dilations));
    }
    return std::get<1>(torch::max_pool1d_with_indices(x, kernel, strides, pads, dilations));
  }

  torch::Tensor pool(const torch::Tensor& x, const Window& window,
                     const std::vector<int64_t>& positions) const override {
    const ConvPlan plan = {window.strides, window.dilations, window.begins,
                           window.ends,    positions,        1};
    if (!wants_gradient(x) && has_planes(x, plan)) {
      return channels_lie_last(x) ? largest_in_channel_windows(x, window.kernel, plan)
                                  : largest_in_windows(x, window.kernel, plan);
    }
    if (libtorch_pads(window)) return run(x, window, window.begins, ceil_);
    const double lowest = -std::numeric_limits<double>::infinity();
    const std::vector<int64_t> none(window.axes(), 0);
    return run(pad_to_fit(x, window, positions, lowest), window, none, false);
  }

  static torch::Tensor run(const torch::Tensor& x, const Window& window,
                           const std::vector<int64_t>& pads, bool ceil) {
    const auto& [kernel, strides, dilations, begins, ends] = window;
    if (kernel.size() == 1) return torch::max_pool1d(x, kernel, strides, pads, dilations, ceil);
    if (kernel.size() == 2) return torch::max_pool2d(x, kernel, strides, pads, dilations, ceil);
    return torch::max_pool3d(x, kernel, strides, pads, dilations, ceil);
  }

  bool columns_first_ = false;
  bool wants_indices_ = false;
};

// Puts the numbers of X back to where MaxPool's Indices say they came from; the rest is 0. The
// indices count in the image whose pooling has X's shape, which a larger output_shape begins with.
class MaxUnpool : public Op {
 public:
  explicit MaxUnpool(OpArguments& arguments)
      : node_(arguments.node()), attributes_(read_window(arguments, /*has_dilations=*/false)) {
    arguments.expect_inputs(2, 3);
    if (attributes_.kernel.empty()) fail(describe(node_), ": attribute 'kernel_shape' is missing");
  }

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor &x = inputs[0], &indices = inputs[1];
    const Window window = make_window(attributes_, attributes_.kernel, node_);
    const auto rank = static_cast<int64_t>(window.axes()) + 2;
    expect_rank(x, rank, rank, node_, "X");
    if (indices.sizes() != x.sizes()) {
      fail(describe(node_), ": X has shape ", shape_text(x.sizes()), ", I ",
           shape_text(indices.sizes()), ", expected one shape");
    }
    std::vector<int64_t> shape = {x.size(0), x.size(1)};
    for (size_t i = 0; i < window.axes(); ++i) {
      const int64_t places = x.size(static_cast<int64_t>(i) + 2);
      shape.push_back((places - 1) * window.strides[i] + window.kernel[i] - window.begins[i] -
                      window.ends[i]);
    }
    check_sample(shape, node_);
    const std::vector<int64_t> wanted = given_shape(inputs, shape);
    int64_t total = 1;
    for (const int64_t size : shape) total *= size;
    const torch::Tensor at = checked_indices(indices.reshape({-1}), total, node_, x.device());
    torch::Tensor y =
        torch::zeros({total}, x.options()).scatter(0, at, x.reshape({-1})).reshape(shape);
    std::vector<int64_t> pads;
    for (size_t i = shape.size(); i-- > 2;) pads.insert(pads.end(), {0, wanted[i] - shape[i]});
    return {torch::constant_pad_nd(y, pads)};
  }

 private:
  std::vector<int64_t> given_shape(const Tensors& inputs, const std::vector<int64_t>& own) const {
    if (inputs.size() < 3 || !inputs[2].defined()) return own;
    std::vector<int64_t> wanted = to_integers(inputs[2], node_, "output_shape");
    bool fits = wanted.size() == own.size() && wanted[0] == own[0] && wanted[1] == own[1];
    for (size_t i = 2; fits && i < own.size(); ++i) fits = wanted[i] >= own[i];
    if (!fits) {
      fail(describe(node_), ": output_shape is ", shape_text(wanted), ", expected at least ",
           shape_text(own));
    }
    check_sample(wanted, node_);
    return wanted;
  }

  Node node_;
  WindowAttributes attributes_;
};

class AveragePool : public Pool {
 public:
  explicit AveragePool(OpArguments& arguments)
      : Pool(arguments, arguments.opset() >= 19),
        count_padding_(arguments.integer("count_include_pad", 0) != 0) {}

  // The mean of windows without padding, by loops of our own.
  bool batch_free(const Tensors&, const std::vector<bool>&) const override {
    const bool flat = attributes_.kernel.size() == 2 && attributes_.auto_pad == AutoPad::kNotSet;
    const bool padded = std::any_of(attributes_.pads.begin(), attributes_.pads.end(),
                                    [](int64_t pad) { return pad != 0; });
    return flat && !padded && !ceil_ && attributes_.dilations.empty();
  }

  BoundRule bound_rule(const std::vector<bool>&) const override { return BoundRule::kAffine; }
  double roundings(const Tensors&) const override { return taps() + 4; }

 private:
  torch::Tensor pool(const torch::Tensor& x, const Window& window,
                     const std::vector<int64_t>& positions) const override {
    const ConvPlan plan = {window.strides, window.dilations, window.begins,
                           window.ends,    positions,        x.size(1)};
    if (has_planes(x, plan) && all_inside(x, window, positions)) {
      const torch::Tensor own = mean_of_windows(x.detach(), window, plan);
      return wants_gradient(x) ? with_gradient_of(run(x, window), own) : own;
    }
    if (libtorch_pads(window) && !is_dilated(window)) return run(x, window);
    torch::Tensor sum = pad_to_fit(x, window, positions, 0);
    for (size_t i = 0; i < window.axes(); ++i) {
      sum = average_along(sum, window, i, positions[i], x.size(static_cast<int64_t>(i) + 2));
    }
    return sum;
  }

  static bool all_inside(const torch::Tensor& x, const Window& window,
                         const std::vector<int64_t>& positions) {
    for (size_t i = 0; i < window.axes(); ++i) {
      const int64_t end = (positions[i] - 1) * window.strides[i] + window.kernel[i];
      if (window.begins[i] != 0 || window.ends[i] != 0) return false;
      if (end > x.size(static_cast<int64_t>(i) + 2)) return false;
    }
    return true;
  }

  // Filters of ones, in either layout.
  torch::Tensor mean_of_windows(const torch::Tensor& x, const Window& window,
                                const ConvPlan& plan) const {
    const torch::Tensor ones =
        torch::ones({x.size(1), 1, window.kernel[0], window.kernel[1]}, x.options());
    ChannelFilters filters;
    const torch::Tensor sum = channels_lie_last(x)
                                  ? depthwise_channels(x, ones, {}, plan, *filters.packed(ones))
                                  : depthwise_conv(x, ones, {}, plan);
    return sum / taps();
  }

  // The mean along one axis of a padded tensor whose unpadded size was `size`.
  torch::Tensor average_along(const torch::Tensor& x, const Window& window, size_t axis,
                              int64_t positions, int64_t size) const {
    const int64_t dim = static_cast<int64_t>(axis) + 2;
    const int64_t span = (positions - 1) * window.strides[axis] + 1;
    torch::Tensor sum;
    for (int64_t tap = 0; tap < window.kernel[axis]; ++tap) {
      const int64_t start = tap * window.dilations[axis];
      const torch::Tensor part = x.slice(dim, start, start + span, window.strides[axis]);
      sum = sum.defined() ? sum + part : part;
    }
    const int64_t low = count_padding_ ? -window.begins[axis] : 0;
    const int64_t high = count_padding_ ? size + window.ends[axis] : size;
    std::vector<int64_t> broadcast(static_cast<size_t>(x.dim()), 1);
    broadcast[static_cast<size_t>(dim)] = positions;
    const torch::Tensor counts = torch::tensor(places(window, axis, positions, low, high));
    return sum / counts.to(x.options()).view(broadcast);
  }

  torch::Tensor run(const torch::Tensor& x, const Window& window) const {
    const auto& [kernel, strides, dilations, begins, ends] = window;
    if (kernel.size() == 1) {
      return torch::avg_pool1d(x, kernel, strides, begins, ceil_, count_padding_);
    }
    if (kernel.size() == 2) {
      return torch::avg_pool2d(x, kernel, strides, begins, ceil_, count_padding_);
    }
    return torch::avg_pool3d(x, kernel, strides, begins, ceil_, count_padding_);
  }

  bool count_padding_;
};

class GlobalPool : public Op {
 public:
  GlobalPool(OpArguments& arguments, bool maximum) : node_(arguments.node()), maximum_(maximum) {
    arguments.expect_inputs(1, 1);
  }

  // X [N, C, …] to [N, C, 1, …].
  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    expect_rank(x, 3, std::numeric_limits<int64_t>::max(), node_, "X");
    expect_floating(x, node_, "X");
    std::vector<int64_t> axes;
    for (int64_t axis = 2; axis < x.dim(); ++axis) {
      if (x.size(axis) == 0) {
        fail(describe(node_), ": X has shape ", shape_text(x.sizes()),
             ", expected no empty spatial axis");
      }
      axes.push_back(axis);
    }
    if (maximum_) return {x.amax(axes, /*keepdim=*/true)};
    const int64_t places = x.numel() / std::max<int64_t>(1, x.size(0) * x.size(1));
    const torch::Tensor own =
        sum_along(x.detach(), axes, /*keep_axes=*/true) / static_cast<double>(places);
    return {wants_gradient(x) ? with_gradient_of(x.mean(axes, /*keepdim=*/true), own) : own};
  }

  BoundRule bound_rule(const std::vector<bool>&) const override {
    return maximum_ ? BoundRule::kLargest : BoundRule::kAffine;
  }
  double roundings(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    return static_cast<double>(x.numel() / std::max<int64_t>(1, x.size(0) * x.size(1))) + 2;
  }
  torch::Tensor candidates(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    std::vector<int64_t> shape(static_cast<size_t>(x.dim()) + 1, 1);
    shape[0] = x.size(0);
    shape[1] = x.size(1);
    shape.back() = -1;
    return x.reshape(shape);
  }

  double flops(const Tensors& inputs, const Tensors&) const override {
    return static_cast<double>(inputs[0].numel());
  }

 private:
  Node node_;
  bool maximum_;
};

}  // namespace

OpPointer make_max_pool(OpArguments& arguments) { return std::make_unique<MaxPool>(arguments); }

OpPointer make_max_unpool(OpArguments& arguments) { return std::make_unique<MaxUnpool>(arguments); }

OpPointer make_average_pool(OpArguments& arguments) {
  return std::make_unique<AveragePool>(arguments);
}

OpPointer make_global_average_pool(OpArguments& arguments) {
  return std::make_unique<GlobalPool>(arguments, /*maximum=*/false);
}

OpPointer make_global_max_pool(OpArguments& arguments) {
  return std::make_unique<GlobalPool>(arguments, /*maximum=*/true);
}

}  // namespace fcp
