// The transpose of a convolution in one to three spatial dimensions, with groups, dilations, and
// padding that may differ between the two ends of an axis. libtorch crops both ends alike, so the
// common part goes to it and the rest is cropped after.
//
// Cost: 2 · inputs · kernel · channels of the output.
// Reference: ONNX operator specification. Tested by tests/nn/ops/linear_test.cc.

#include <algorithm>
#include <vector>

#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/nn/ops/conv.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/shared.h"
#include "fcp/nn/ops/window.h"

namespace fcp {
namespace {

class ConvTranspose : public Convolution {
 public:
  explicit ConvTranspose(OpArguments& arguments)
      : node_(arguments.node()),
        attributes_(read_window(arguments, /*has_dilations=*/true)),
        group_(read_group(arguments)),
        output_padding_(read_bounded(arguments, "output_padding", 0)),
        output_shape_(read_bounded(arguments, "output_shape", 1)) {
    arguments.expect_inputs(2, 3);
  }

  // X [N, C, …], W [C, M / group, kernel…], B [M].
  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    const torch::Tensor& w = inputs[1];
    check_convolution(inputs, group_, node_);
    if (x.size(1) != w.size(0)) {
      fail(describe(node_), ": X has ", x.size(1), " channels, but W of shape ",
           shape_text(w.sizes()), " expects ", w.size(0));
    }
    const torch::Tensor bias = checked_bias(inputs, w.size(1) * group_, node_);
    Window window = make_window(attributes_, spatial_shape(w), node_);
    const std::vector<int64_t> extra = extra_sizes(window);
    const std::vector<int64_t> wanted = place(window, extra, spatial_shape(x));
    return {run(x, w, bias, window, extra, wanted)};
  }

  // An output sums over the input channels of its group and at most all places of the kernel.
  double roundings(const Tensors& inputs) const override {
    const torch::Tensor& w = inputs[1];
    return static_cast<double>(w.numel() / w.size(1) / group_) + 2;
  }

  double flops(const Tensors& inputs, const Tensors&) const override {
    return kernel_flops(inputs[0], inputs[1]);
  }

 private:
  // output_padding: places added at the end of each axis.
  std::vector<int64_t> extra_sizes(const Window& window) const {
    if (output_padding_.empty()) return std::vector<int64_t>(window.axes(), 0);
    bool fits = output_padding_.size() == window.axes();
    for (size_t i = 0; fits && i < window.axes(); ++i) {
      fits = output_padding_[i] < std::max(window.strides[i], window.dilations[i]);
    }
    if (!fits) {
      fail(describe(node_), ": output_padding is ", shape_text(output_padding_), ", expected ",
           window.axes(), " numbers from 0 to below stride or dilation");
    }
    return output_padding_;
  }

  // Where output_shape or auto_pad decide, sets the padding that gives the wanted size:
  //   total = stride·(input − 1) + output_padding + reach − wanted.
  // A negative total means places at the end that no input reaches. Returns the output's size.
  std::vector<int64_t> place(Window& window, const std::vector<int64_t>& extra,
                             const std::vector<int64_t>& spatial) const {
    const AutoPad pad = attributes_.auto_pad;
    const bool same = pad == AutoPad::kSameUpper || pad == AutoPad::kSameLower;
    if (!output_shape_.empty() && output_shape_.size() != window.axes()) {
      fail(describe(node_), ": output_shape has ", output_shape_.size(), " numbers, expected ",
           window.axes());
    }
    std::vector<int64_t> wanted(window.axes());
    for (size_t i = 0; i < window.axes(); ++i) {
      if (spatial[i] < 1) fail(describe(node_), ": spatial axis ", i, " of X is empty");
      const int64_t full = window.strides[i] * (spatial[i] - 1) + extra[i] + window.reach(i);
      if (!output_shape_.empty() || same) {
        wanted[i] = output_shape_.empty() ? spatial[i] * window.strides[i] : output_shape_[i];
        split_padding(window, i, std::max<int64_t>(full - wanted[i], 0),
                      pad == AutoPad::kSameUpper);
      } else {
        wanted[i] = full - window.begins[i] - window.ends[i];
      }
      if (wanted[i] < 1) {
        fail(describe(node_), ": output would have ", wanted[i], " places along spatial axis ", i);
      }
    }
    return wanted;
  }

  torch::Tensor run(const torch::Tensor& x, const torch::Tensor& w, const torch::Tensor& bias,
                    const Window& window, const std::vector<int64_t>& extra,
                    const std::vector<int64_t>& wanted) const {
    const size_t axes = window.axes();
    std::vector<int64_t> common(axes);  // cropped by libtorch from both ends
    std::vector<int64_t> computed = {x.size(0), w.size(1) * group_};
    std::vector<int64_t> missing(axes);
    bool complete = true;
    for (size_t i = 0; i < axes; ++i) {
      common[i] = std::min(window.begins[i], window.ends[i]);
      computed.push_back(window.strides[i] * (x.size(static_cast<int64_t>(i) + 2) - 1) + extra[i] +
                         window.reach(i) - 2 * common[i]);
      missing[i] = std::max<int64_t>(wanted[i] - computed.back(), 0);
      complete = complete && missing[i] == 0;
    }
    check_sample(computed, node_);
    torch::Tensor y =
        torch::convolution(x, w, complete ? bias : torch::Tensor(), window.strides, common,
                           window.dilations, /*transposed=*/true, extra, group_);
    if (!complete) {
      y = pad_spatial(y, std::vector<int64_t>(axes, 0), missing, 0, node_);
      std::vector<int64_t> per_channel(axes + 2, 1);
      per_channel[1] = -1;
      if (bias.defined()) y = y + bias.view(per_channel);
    }
    for (size_t i = 0; i < axes; ++i) {
      y = y.narrow(static_cast<int64_t>(i) + 2, window.begins[i] - common[i], wanted[i]);
    }
    return y;
  }

  Node node_;
  WindowAttributes attributes_;
  int64_t group_;
  std::vector<int64_t> output_padding_;
  std::vector<int64_t> output_shape_;
};

}  // namespace

OpPointer make_conv_transpose(OpArguments& arguments) {
  return std::make_unique<ConvTranspose>(arguments);
}

// Col2Im: the sum of overlapping blocks of an image, the transpose of taking them out. Input
// [N, C · Πk, L]: each of L positions of the window has a block of Πk numbers per channel.
//
//   y[n, c, p] = Σ x[n, c·Πk + t, l]   over all (t, l) whose tap t of position l lies at p
//
// Gradients flow. Affine in the input; what lies in the padding is dropped.
// Cost: linear in the input. Reference: ONNX operator specification, Col2Im 18.
// Tested by tests/nn/ops/pooling_test.cc.

namespace {

class Col2ImOp : public Op {
 public:
  explicit Col2ImOp(OpArguments& arguments) : node_(arguments.node()) {
    arguments.expect_inputs(3, 3);
    attributes_.strides = read_bounded(arguments, "strides", 1);
    attributes_.dilations = read_bounded(arguments, "dilations", 1);
    attributes_.pads = read_bounded(arguments, "pads", 0);
  }

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    expect_rank(x, 3, 3, node_, "input");
    expect_floating(x, node_, "input");
    const std::vector<int64_t> image = sizes_of(inputs[1], "image_shape");
    const std::vector<int64_t> block = sizes_of(inputs[2], "block_shape");
    if (image.empty() || image.size() != block.size()) {
      fail(describe(node_), ": image_shape has ", image.size(), " numbers, block_shape ",
           block.size(), ", expected as many, and one at least");
    }
    const Window window = make_window(attributes_, block, node_);
    const std::vector<int64_t> positions = window_positions(window, image, false, node_);
    const int64_t taps = checked_elements(block, node_),
                  places = checked_elements(positions, node_);
    if (x.size(1) % taps != 0 || x.size(2) != places) {
      fail(describe(node_), ": input has shape ", shape_text(x.sizes()),
           ", expected a multiple of ", taps, " numbers at each of ", places, " positions");
    }
    const int64_t channels = x.size(1) / taps;
    std::vector<int64_t> padded;
    for (size_t i = 0; i < image.size(); ++i) {
      padded.push_back(image[i] + window.begins[i] + window.ends[i]);
    }
    std::vector<int64_t> shape = padded;
    shape.insert(shape.begin(), {x.size(0), channels});
    check_sample(shape, node_);
    const torch::Tensor at = targets(window, positions, padded).to(x.device());
    const torch::Tensor flat = x.reshape({x.size(0) * channels, taps * places});
    torch::Tensor y = torch::zeros({flat.size(0), checked_elements(padded, node_)}, x.options())
                          .scatter_add(1, at.unsqueeze(0).expand_as(flat), flat)
                          .reshape(shape);
    for (size_t i = 0; i < image.size(); ++i) {
      y = y.narrow(static_cast<int64_t>(i) + 2, window.begins[i], image[i]);
    }
    return {y.contiguous()};
  }

  BoundRule bound_rule(const std::vector<bool>& constant) const override {
    return affine_in_first(constant);
  }
  // At most one number of each tap meets in a place.
  double roundings(const Tensors& inputs) const override {
    return inputs[2].to(torch::kDouble).prod().item<double>() + 1;
  }

 private:
  std::vector<int64_t> sizes_of(const torch::Tensor& tensor, const char* what) const {
    std::vector<int64_t> sizes = to_integers(tensor, node_, what);
    for (const int64_t size : sizes) {
      if (size < 1 || size > kMaxElements) {
        fail(describe(node_), ": ", what, " is ", shape_text(sizes), ", expected sizes from 1 to ",
             kMaxElements);
      }
    }
    return sizes;
  }

  // [taps · positions]: where each number of a channel goes in the padded image, flattened.
  static torch::Tensor targets(const Window& window, const std::vector<int64_t>& positions,
                               const std::vector<int64_t>& padded) {
    torch::Tensor taps = torch::zeros({1}, torch::kLong), starts = torch::zeros({1}, torch::kLong);
    for (size_t i = 0; i < padded.size(); ++i) {
      const auto along = [&](const torch::Tensor& before, int64_t count, int64_t step) {
        const torch::Tensor here = torch::arange(count, torch::kLong) * step;
        return (before.unsqueeze(1) * padded[i] + here).flatten();
      };
      taps = along(taps, window.kernel[i], window.dilations[i]);
      starts = along(starts, positions[i], window.strides[i]);
    }
    return (taps.unsqueeze(1) + starts).flatten();
  }

  Node node_;
  WindowAttributes attributes_;
};

}  // namespace

OpPointer make_col2im(OpArguments& arguments) { return std::make_unique<Col2ImOp>(arguments); }

// DeformConv: a convolution of an image whose taps are moved by an offset given for every output
// pixel, and weighted by a mask. Between pixels the image is interpolated, outside it is 0.
//
//   y[o, p] = b_o + Σ_{c, k} w[o, c, k] · m[k, p] · x[c, s·p + d·k − pad + offset[k, p]]
//
// Gradients flow; no bounds. Cost: 4 reads per tap, channel and output pixel, and the convolution.
// Reference: ONNX operator specification, DeformConv 19 and 22. Tested by
// tests/nn/ops/linear_test.cc.

namespace {

class DeformConvOp : public Op {
 public:
  explicit DeformConvOp(OpArguments& arguments)
      : node_(arguments.node()),
        attributes_(read_window(arguments, /*has_dilations=*/true)),
        group_(read_group(arguments)),
        offset_group_(arguments.integer("offset_group", 1)) {
    arguments.expect_inputs(3, 5);
    if (offset_group_ < 1) {
      fail(describe(node_), ": offset_group is ", offset_group_, ", expected 1 at least");
    }
  }

  // X [N, C, H, W], W [O, C / group, k_h, k_w], offset [N, offset_group · k_h · k_w · 2, …], B,
  // mask.
  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor &x = inputs[0], &w = inputs[1];
    expect_rank(x, 4, 4, node_, "X");
    expect_floating(x, node_, "X");
    check_convolution({x, w}, group_, node_);
    if (w.size(1) * group_ != x.size(1) || x.size(1) % offset_group_ != 0) {
      fail(describe(node_), ": X has ", x.size(1), " channels, W with group = ", group_,
           " expects ", w.size(1) * group_, " in ", offset_group_, " groups of offsets");
    }
    Window window = make_window(attributes_, spatial_shape(w), node_);
    apply_auto_pad(window, attributes_.auto_pad, spatial_shape(x));
    const std::vector<int64_t> out = window_positions(window, spatial_shape(x), false, node_);
    const int64_t taps = window.kernel[0] * window.kernel[1], places = out[0] * out[1];
    check_sample({x.size(0), x.size(1), taps, out[0], out[1]}, node_);
    const torch::Tensor offset = per_group(inputs[2], 2 * taps, out, x, "offset");
    const auto axis = [&](size_t i) {  // [1, 1, taps, places]: where the taps would be
      const torch::Tensor tap =
          torch::arange(window.kernel[i], x.options()) * static_cast<double>(window.dilations[i]);
      const torch::Tensor start =
          torch::arange(out[i], x.options()) * static_cast<double>(window.strides[i]) -
          static_cast<double>(window.begins[i]);
      const torch::Tensor both = tap.unsqueeze(1) + start;  // [k, out]
      const std::vector<int64_t> view = i == 0
                                            ? std::vector<int64_t>{window.kernel[0], 1, out[0], 1}
                                            : std::vector<int64_t>{1, window.kernel[1], 1, out[1]};
      return both.reshape(view)
          .expand({window.kernel[0], window.kernel[1], out[0], out[1]})
          .reshape({1, 1, taps, places});
    };
    const torch::Tensor moved = offset.reshape({x.size(0), offset_group_, taps, 2, places});
    torch::Tensor columns = sampled(x, moved.select(3, 0) + axis(0), moved.select(3, 1) + axis(1));
    if (inputs.size() > 4 && inputs[4].defined()) {
      const torch::Tensor mask = per_group(inputs[4], taps, out, x, "mask");
      columns = columns * mask.reshape({x.size(0), offset_group_, 1, taps, places});
    }
    columns = columns.reshape({x.size(0), group_, w.size(1) * taps, places});
    const torch::Tensor weights = w.reshape({1, group_, w.size(0) / group_, w.size(1) * taps});
    torch::Tensor y =
        torch::matmul(weights, columns).reshape({x.size(0), w.size(0), out[0], out[1]});
    if (inputs.size() > 3 && inputs[3].defined()) {
      expect_vector(inputs[3], w.size(0), node_, "B");
      y = y + inputs[3].view({-1, 1, 1});
    }
    return {y};
  }

  double flops(const Tensors& inputs, const Tensors& outputs) const override {
    return kernel_flops(outputs[0], inputs[1]);
  }

 private:
  torch::Tensor per_group(const torch::Tensor& tensor, int64_t each,
                          const std::vector<int64_t>& out, const torch::Tensor& x,
                          const char* what) const {
    const std::vector<int64_t> shape = {x.size(0), offset_group_ * each, out[0], out[1]};
    expect_type_of(x, tensor, node_, what);
    if (tensor.sizes() != torch::IntArrayRef(shape)) {
      fail(describe(node_), ": ", what, " has shape ", shape_text(tensor.sizes()), ", expected ",
           shape_text(shape));
    }
    return tensor;
  }

  // The image at places [N, groups, taps, places]: [N, groups, C / groups, taps, places].
  torch::Tensor sampled(const torch::Tensor& x, const torch::Tensor& row,
                        const torch::Tensor& column) const {
    const int64_t rows = x.size(0), height = x.size(2), width = x.size(3);
    const int64_t channels = x.size(1) / offset_group_;
    const torch::Tensor pixels = x.reshape({rows, offset_group_, channels, height * width});
    const torch::Tensor top = row.floor(), left = column.floor();
    torch::Tensor sum;
    for (const int corner : {0, 1, 2, 3}) {
      const torch::Tensor r = top + corner / 2, c = left + corner % 2;
      const torch::Tensor weight = (1 - (row - r).abs()) * (1 - (column - c).abs());
      const torch::Tensor inside = (r >= 0).logical_and(r < static_cast<double>(height)) *
                                   (c >= 0).logical_and(c < static_cast<double>(width));
      // An offset that is no number makes the weight NaN; the pixel it is multiplied by is any.
      const torch::Tensor at =
          (r.nan_to_num(0).clamp(0, static_cast<double>(height - 1)).to(torch::kLong) * width +
           c.nan_to_num(0).clamp(0, static_cast<double>(width - 1)).to(torch::kLong));
      const torch::Tensor found =
          pixels.gather(3, at.reshape({rows, offset_group_, 1, -1})
                               .expand({rows, offset_group_, channels, row.size(2) * row.size(3)}));
      const torch::Tensor part = found.reshape({rows, offset_group_, channels, row.size(2), -1}) *
                                 (weight * inside.to(x.scalar_type())).unsqueeze(2);
      sum = sum.defined() ? sum + part : part;
    }
    return sum;
  }

  Node node_;
  WindowAttributes attributes_;
  int64_t group_, offset_group_;
};

}  // namespace

OpPointer make_deform_conv(OpArguments& arguments) {
  return std::make_unique<DeformConvOp>(arguments);
}

}  // namespace fcp
