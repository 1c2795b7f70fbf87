// DeformConv: a convolution of an image whose taps are moved by an offset given for every output
// pixel, and weighted by a mask. Between pixels the image is interpolated, outside it is 0.
//
//   y[o, p] = b_o + Σ_{c, k} w[o, c, k] · m[k, p] · x[c, s·p + d·k − pad + offset[k, p]]
//
// Gradients flow; no bounds. Cost: 4 reads per tap, channel and output pixel, and the convolution.
// Reference: ONNX operator specification, DeformConv 19 and 22. Tested by
// tests/nn/ops/linear_test.cc.
#include <vector>

#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/nn/ops/checks.h"
#include "fcp/nn/ops/convolution.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/shared.h"
#include "fcp/nn/ops/window.h"

namespace fcp {
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
