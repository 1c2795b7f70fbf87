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
#include "fcp/nn/ops/checks.h"
#include "fcp/nn/ops/convolution.h"
#include "fcp/nn/ops/factories.h"
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

}  // namespace fcp
