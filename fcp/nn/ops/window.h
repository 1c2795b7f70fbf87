// The sliding window that convolutions and poolings share: kernel, strides, dilations and padding,
// one number per spatial axis, and the size of what comes out.
//
// Along one axis of input size L, with kernel k, dilation d, stride s and padding (b, e), the
// window reaches over d(k − 1) + 1 places and has floor((L + b + e − reach) / s) + 1 positions.
// auto_pad SAME chooses b + e so that there are ceil(L / s) positions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fcp/nn/ops/op.h"

namespace fcp {

enum class AutoPad { kNotSet, kSameUpper, kSameLower, kValid };

// What a node says about its window; an empty list stands for the default.
struct WindowAttributes {
  AutoPad auto_pad = AutoPad::kNotSet;
  std::vector<int64_t> kernel;
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  std::vector<int64_t> pads;  // all begins, then all ends
};

// The same for a known number of spatial axes: every list has one number per axis.
struct Window {
  std::vector<int64_t> kernel;
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  std::vector<int64_t> begins;
  std::vector<int64_t> ends;

  size_t axes() const { return kernel.size(); }
  int64_t reach(size_t axis) const { return (kernel[axis] - 1) * dilations[axis] + 1; }
};

// A list of integers, each from `least` to kMaxElements, which keeps products of two of them far
// from overflow.
std::vector<int64_t> read_bounded(OpArguments& arguments, const char* name, int64_t least);

// Reads kernel_shape, strides, pads, auto_pad and, where the operator has it, dilations.
WindowAttributes read_window(OpArguments& arguments, bool has_dilations);

// Fills in defaults for a kernel of this size, which must agree with kernel_shape where the node
// gives it. Padding is what `pads` says.
Window make_window(const WindowAttributes& attributes, std::vector<int64_t> kernel,
                   const Node& node);

// Replaces the padding by what auto_pad asks for on an input of this spatial shape.
void apply_auto_pad(Window& window, AutoPad auto_pad, const std::vector<int64_t>& spatial);

// Splits `total` padding in two; the odd one goes to the end for SAME_UPPER, else to the beginning.
void split_padding(Window& window, size_t axis, int64_t total, bool upper);

// How often the window fits along each axis. With `ceil`, a last window may reach beyond the
// padded input, but it must begin inside the input or the padding before it. An error names the
// node when the window does not fit.
std::vector<int64_t> window_positions(const Window& window, const std::vector<int64_t>& spatial,
                                      bool ceil, const Node& node);

// Sizes of all dimensions after batch and channels.
std::vector<int64_t> spatial_shape(const torch::Tensor& tensor);

// Adds constant padding to the spatial axes, which are the last ones.
torch::Tensor pad_spatial(const torch::Tensor& x, const std::vector<int64_t>& begins,
                          const std::vector<int64_t>& ends, double value, const Node& node);

}  // namespace fcp
