// Convolution in one to three spatial dimensions, with groups, dilations, and padding that may
// differ between the two ends of an axis: by loops of our own (dense_conv.h, channel_windows.h,
// own_conv.h), where one spatial axis is an image of one row, or by libtorch, which pads both ends
// alike, so that the common part goes to it and the rest is padded before.
//
// Cost: 2 · outputs · kernel · channels of the input.
// Reference: ONNX operator specification. Tested by tests/nn/ops/linear_test.cc.
#include "fcp/nn/ops/conv.h"

#include <algorithm>
#include <utility>

#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/nn/kernels/cpu/channel_scale.h"
#include "fcp/nn/kernels/cpu/channel_windows.h"
#include "fcp/nn/kernels/cpu/dense_conv.h"
#include "fcp/nn/kernels/cpu/gradient_of.h"
#include "fcp/nn/kernels/cpu/line_rows.h"
#include "fcp/nn/kernels/cpu/own_conv.h"
#include "fcp/nn/kernels/cuda/conv_back_cuda.h"
#include "fcp/nn/kernels/cuda/cuda_kernels.h"
#include "fcp/nn/ops/byte_product.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/shared.h"
#include "fcp/nn/ops/window.h"
#include "fcp/nn/runtime/device_waits.h"

namespace fcp {
namespace {

// Places along one spatial axis.
struct PlaceSpan {
  int64_t first = 0;
  int64_t count = 1;
};

// The smallest box of places outside of which a [N, C, …] is 0; the first place where all is. All
// places where that cannot be known without waiting for a device.
std::vector<PlaceSpan> nonzero_spans(const torch::Tensor& a) {
  std::vector<PlaceSpan> spans;
  if (!may_read_back(a)) {
    for (const int64_t size : a.sizes().slice(2)) spans.push_back({0, size});
    return spans;
  }
  torch::Tensor places;
  if (takes_loops(a)) {
    const std::vector<bool> used = used_places(a.flatten(2));
    places = torch::zeros(a.sizes().slice(2), torch::kBool);
    for (size_t i = 0; i < used.size(); ++i) places.data_ptr<bool>()[i] = used[i];
  } else {
    places = a.detach().ne(0).any(0).any(0);
  }
  for (int64_t dim = 0; dim < places.dim(); ++dim) {
    const torch::Tensor used =
        places.transpose(0, dim).reshape({places.size(dim), -1}).any(1).nonzero();
    if (used.numel() == 0) return std::vector<PlaceSpan>(static_cast<size_t>(places.dim()));
    const int64_t first = used[0].item<int64_t>();
    spans.push_back({first, used[-1].item<int64_t>() - first + 1});
  }
  return spans;
}

class Conv : public Convolution, public ByteProduct {
 public:
  explicit Conv(OpArguments& arguments)
      : node_(arguments.node()),
        attributes_(read_window(arguments, /*has_dilations=*/true)),
        group_(read_group(arguments)) {
    arguments.expect_inputs(2, 3);
  }

  // X [N, C, …], W [M, C / group, kernel…], B [M].
  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor x = as_image(inputs[0]), w = as_image(inputs[1]);
    const Task task = task_of(inputs);
    const ConvPlan& plan = task.plan;
    const torch::Tensor numbers = x.detach();
    const auto by_library = [&] {
      return by_libtorch(inputs[0], inputs[1], task.bias, task.window);
    };
    const bool pointwise = is_pointwise(x, w, plan);
    if (!pointwise && !is_depthwise(x, w, plan)) {
      if (!is_dense(x, w, plan)) return {by_library()};
      const torch::Tensor dense = dense_conv(numbers, w, task.bias, plan, weights_);
      const torch::Tensor own = channels_lie_last(x) ? dense : dense.contiguous();
      return {in_shape(wants_gradient(x) ? with_conv_gradient(x, w, own, plan) : own, task)};
    }
    const torch::Tensor own = in_shape(pointwise ? pointwise_conv(numbers, w, task.bias)
                                                 : depthwise_conv(numbers, w, task.bias, plan),
                                       task);
    return {wants_gradient(x) ? with_gradient_of(by_library(), own) : own};
  }

  // By loops of our own: dense_conv.h, channel_windows.h, own_conv.h.
  bool batch_free(const Tensors& inputs, const std::vector<bool>& constant) const override {
    const torch::Tensor& w = inputs[1];
    if (!w.defined() || w.dim() > 4 || w.scalar_type() != torch::kFloat) return false;
    if (inputs.size() > 2 && !constant[2]) return false;
    if (group_ == 1) return true;
    const bool near = std::all_of(attributes_.dilations.begin(), attributes_.dilations.end(),
                                  [](int64_t dilation) { return dilation == 1; });
    return near && group_ == w.size(0) && w.size(1) == 1;
  }

  // Channels come out side by side.
  torch::Tensor forward_with_epilogue(const Tensors& inputs,
                                      const Epilogue& epilogue) const override {
    const torch::Tensor x = as_image(inputs[0]), w = as_image(inputs[1]);
    const Task task = task_of(inputs);
    const torch::Tensor& added = epilogue.added;
    const bool fits = !added.defined() || (added.sizes() == torch::IntArrayRef(task.shape) &&
                                           added.scalar_type() == torch::kFloat);
    if (epilogue.bias.defined() || !fits || wants_gradient(x)) return {};
    Epilogue end = epilogue;
    if (added.defined()) end.added = as_image(added);
    if (is_depthwise(x, w, task.plan) && !is_pointwise(x, w, task.plan)) {
      const std::shared_ptr<const ChannelWeights> filters = filters_.packed(w);
      if (!filters->finite) return {};
      return in_shape(depthwise_channels(x, w, task.bias, task.plan, *filters, end), task);
    }
    if (!is_dense(x, w, task.plan)) return {};
    return in_shape(dense_conv(x, w, task.bias, task.plan, weights_, end), task);
  }

  torch::Tensor byte_filters(const torch::Tensor& w) const override {
    return group_ == 1 && (w.dim() == 3 || w.dim() == 4) ? as_image(w) : torch::Tensor();
  }
  torch::Tensor forward_bytes(const torch::Tensor& x, int32_t x_zero, const ByteFilters& filters,
                              const ByteEnd& end) const override {
    if (x.dim() < 3 || x.dim() > 4 || x.size(1) != filters.shape[1]) return {};
    const std::vector<int64_t> kernel(filters.shape.end() - static_cast<ptrdiff_t>(x.dim() - 2),
                                      filters.shape.end());
    Window window = make_window(attributes_, kernel, node_);
    apply_auto_pad(window, attributes_.auto_pad, spatial_shape(x));
    const Task task = placed_task(x, filters.shape[0], window);
    if (task.plan.dilations[1] != 1) return {};
    const torch::Tensor y = byte_conv(as_image(x), x_zero, filters, task.plan, end);
    if (end.type == torch::kFloat) return in_shape(y, task);
    return x.dim() == 3 ? y.squeeze(2) : y;  // bytes stay as they lie
  }

  // The transposed convolution of the coefficients. A bounded output far behind sees but a few
  // places of this one, so only the box around coefficients that are not 0 is multiplied.
  torch::Tensor pull_back(const torch::Tensor& coefficients, const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    const torch::Tensor& w = inputs[1];
    const Window window = padded_window(x, w);
    torch::Tensor a = coefficients.flatten(0, 1);  // [SN, M, …]
    std::vector<int64_t> shape = coefficients.sizes().slice(0, 2).vec();
    for (const int64_t size : x.sizes().slice(1)) shape.push_back(size);
    const ConvPlan plan = {window.strides, window.dilations, window.begins, window.ends, {},
                           group_};
    if constexpr (kCudaKernels) {
      if (takes_conv_back_cuda(a, w, plan)) {
        return conv_back_cuda(a, w, plan, x.size(2), x.size(3)).reshape(shape);
      }
    }
    const std::vector<PlaceSpan> spans = nonzero_spans(a);
    std::vector<int64_t> pads;  // from the last axis on
    for (size_t i = window.axes(); i-- > 0;) {
      const auto dim = static_cast<int64_t>(i) + 2;
      a = a.narrow(dim, spans[i].first, spans[i].count);
      const int64_t begin = spans[i].first * window.strides[i] - window.begins[i];
      const int64_t end = begin + (spans[i].count - 1) * window.strides[i] + window.reach(i);
      if (end <= 0 || begin >= x.size(dim)) return {};  // wholly in the padding
      pads.insert(pads.end(), {begin, x.size(dim) - end});
    }
    const std::vector<int64_t> none(window.axes(), 0);
    const torch::Tensor product = torch::convolution(
        a, w, {}, window.strides, none, window.dilations, /*transposed=*/true, none, group_);
    return torch::constant_pad_nd(product, pads).reshape(shape);
  }

  // libtorch may write all windows of a row beside each other.
  double workspace(const Tensors& inputs, const Tensors& outputs) const override {
    const torch::Tensor& w = inputs[1];
    const Window window = padded_window(inputs[0], w);
    const std::vector<int64_t> ones(window.axes(), 1);
    if (window.kernel == ones && window.strides == ones) return 0;
    return kernel_flops(outputs[0], w) / (2.0 * static_cast<double>(w.size(0) / group_));
  }

  double flops(const Tensors& inputs, const Tensors& outputs) const override {
    return kernel_flops(outputs[0], inputs[1]);
  }

 private:
  // What there is to do for these inputs, which are checked.
  struct Task {
    Window window;
    ConvPlan plan;
    torch::Tensor bias;
    std::vector<int64_t> shape;  // of the output
  };

  Task task_of(const Tensors& inputs) const {
    const torch::Tensor& x = inputs[0];
    const torch::Tensor& w = inputs[1];
    check_convolution(inputs, group_, node_);
    if (x.size(1) != w.size(1) * group_) {
      fail(describe(node_), ": X has ", x.size(1), " channels, but W of shape ",
           shape_text(w.sizes()), " with group = ", group_, " expects ", w.size(1) * group_);
    }
    Task task = placed_task(x, w.size(0), padded_window(x, w));
    task.bias = checked_bias(inputs, w.size(0), node_);
    return task;
  }

  Task placed_task(const torch::Tensor& x, int64_t filters, const Window& window) const {
    Task task;
    task.window = window;
    task.shape = window_positions(window, spatial_shape(x), false, node_);
    task.plan = {window.strides, window.dilations, window.begins, window.ends, task.shape, group_};
    task.shape.insert(task.shape.begin(), {x.size(0), filters});
    check_sample(task.shape, node_);
    if (x.dim() == 3) {
      for (auto* each : {&task.plan.strides, &task.plan.dilations, &task.plan.places}) {
        each->insert(each->begin(), 1);
      }
      for (auto* each : {&task.plan.begins, &task.plan.ends}) each->insert(each->begin(), 0);
    }
    return task;
  }

  // Of one spatial axis: an image of one row, which is what the plan of the task means.
  static torch::Tensor as_image(const torch::Tensor& x) {
    return x.dim() == 3 ? x.unsqueeze(2) : x;
  }
  static torch::Tensor in_shape(const torch::Tensor& y, const Task& task) {
    return task.shape.size() == 3 ? y.squeeze(2).contiguous() : y;
  }

  torch::Tensor by_libtorch(const torch::Tensor& x, const torch::Tensor& w,
                            const torch::Tensor& bias, Window window) const {
    std::vector<int64_t> common(window.axes());
    for (size_t i = 0; i < window.axes(); ++i) {
      common[i] = std::min(window.begins[i], window.ends[i]);
      window.begins[i] -= common[i];
      window.ends[i] -= common[i];
    }
    const torch::Tensor padded = pad_spatial(x, window.begins, window.ends, 0, node_);
    const std::vector<int64_t> none(window.axes(), 0);
    return torch::convolution(padded, w, bias, window.strides, common, window.dilations,
                              /*transposed=*/false, none, group_);
  }

  Window padded_window(const torch::Tensor& x, const torch::Tensor& w) const {
    Window window = make_window(attributes_, spatial_shape(w), node_);
    apply_auto_pad(window, attributes_.auto_pad, spatial_shape(x));
    return window;
  }

  Node node_;
  WindowAttributes attributes_;
  int64_t group_;
  mutable PackedCache weights_;
  mutable ChannelFilters filters_;
};

}  // namespace

OpPointer make_conv(OpArguments& arguments) { return std::make_unique<Conv>(arguments); }

int64_t read_group(OpArguments& arguments) {
  const int64_t group = arguments.integer("group", 1);
  if (group < 1 || group > kMaxElements) {
    fail(describe(arguments.node()), ": group is ", group, ", expected a positive number");
  }
  return group;
}

void check_convolution(const Tensors& inputs, int64_t group, const Node& node) {
  const torch::Tensor& x = inputs[0];
  const torch::Tensor& w = inputs[1];
  expect_rank(x, 3, 5, node, "X");
  expect_floating(x, node, "X");
  expect_rank(w, x.dim(), x.dim(), node, "W");
  expect_type_of(x, w, node, "W");
  if (w.numel() == 0) {
    fail(describe(node), ": W has shape ", shape_text(w.sizes()), ", expected no empty dimension");
  }
  if (w.size(0) % group != 0) {
    fail(describe(node), ": W has ", w.size(0), " filters, expected a multiple of group = ", group);
  }
}

torch::Tensor checked_bias(const Tensors& inputs, int64_t channels, const Node& node) {
  if (inputs.size() < 3 || !inputs[2].defined()) return {};
  expect_vector(inputs[2], channels, node, "B");
  expect_type_of(inputs[0], inputs[2], node, "B");
  return inputs[2].contiguous();
}

double kernel_flops(const torch::Tensor& places, const torch::Tensor& w) {
  const auto per_place = static_cast<double>(w.numel() / w.size(0));
  return 2.0 * static_cast<double>(places.numel()) * per_place;
}

BoundRule Convolution::bound_rule(const std::vector<bool>& constant) const {
  return affine_in_first(constant);
}

std::vector<Range> Convolution::interval(const std::vector<Range>& inputs, double) const {
  return product_interval(*this, inputs);
}

double Convolution::roundings(const Tensors& inputs) const {
  return static_cast<double>(inputs[1].numel() / inputs[1].size(0)) + 2;
}

Op::BallOutput Convolution::over_ball(const BallInput& ball, const Tensors& inputs) const {
  return product_over_ball(*this, ball, inputs, 1, {});
}

}  // namespace fcp
