// Images [N, C, H, W] and the window that goes over them, and their rows as windows want to read
// them: the channels of neighbouring places side by side, with the padding around them, so that a
// window is as many pieces as it has rows. Bands of rows are copied, once each. Float32 numbers or
// bytes. Tested by tests/nn/kernels/cpu/dense_conv_test.cc.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "fcp/base/lanes.h"
#include "fcp/nn/kernels/cpu/own_conv.h"

namespace fcp {

inline size_t count_of(int64_t n) { return static_cast<size_t>(n); }

struct WindowShape {
  ptrdiff_t height, width, channels;
  ptrdiff_t out_height, out_width;
  ptrdiff_t kernel_y, kernel_x, stride_y, stride_x, begin_y, begin_x, step_y, step_x;

  WindowShape(const torch::Tensor& x, torch::IntArrayRef kernel, const ConvPlan& plan)
      : height(x.size(2)),
        width(x.size(3)),
        channels(x.size(1)),
        out_height(plan.places[0]),
        out_width(plan.places[1]),
        kernel_y(kernel[0]),
        kernel_x(kernel[1]),
        stride_y(plan.strides[0]),
        stride_x(plan.strides[1]),
        begin_y(plan.begins[0]),
        begin_x(plan.begins[1]),
        step_y(plan.dilations[0]),
        step_x(plan.dilations[1]) {}

  size_t taps() const { return count_of(kernel_y * kernel_x); }
  size_t places() const { return count_of(out_height * out_width); }
  size_t image() const { return count_of(height * width * channels); }

  // Columns that the windows of a row touch, and inputs of a row of a band.
  ptrdiff_t columns() const { return (out_width - 1) * stride_x + (kernel_x - 1) * step_x + 1; }
  ptrdiff_t band_row() const { return columns() * channels; }
  // Rows of windows that are copied at once, and such bands of an image.
  ptrdiff_t band_rows() const {
    constexpr ptrdiff_t kBandInputs = 1 << 16;
    return std::clamp<ptrdiff_t>(kBandInputs / (band_row() * stride_y), 1, out_height);
  }
  size_t bands() const { return count_of((out_height + band_rows() - 1) / band_rows()); }
  std::pair<ptrdiff_t, ptrdiff_t> band(size_t index) const {
    const ptrdiff_t first = static_cast<ptrdiff_t>(index) * band_rows();
    return {first, std::min(first + band_rows(), out_height)};
  }
};

// Images in either layout, without gaps.
template <typename In>
class BandCopy {
 public:
  // `padding` is what stands around an image.
  BandCopy(const WindowShape& shape, bool channels_last, In padding)
      : shape_(shape), channels_last_(channels_last), padding_(padding) {}

  // Of rows [first, last) of windows: the inputs from the first window's first one on. With
  // `flips`, signed bytes become unsigned ones, 128 larger, but for the padding.
  const In* copy(const In* image, ptrdiff_t first, ptrdiff_t last, bool flips = false) {
    const ptrdiff_t top = first * shape_.stride_y - shape_.begin_y;
    const ptrdiff_t rows =
        (last - first - 1) * shape_.stride_y + (shape_.kernel_y - 1) * shape_.step_y + 1;
    constexpr size_t kBeyond = 64;  // bytes are read four at a time
    inputs_.resize(count_of(rows * shape_.band_row()) + kBeyond);
    for (ptrdiff_t i = 0; i < rows; ++i) {
      copy_row(image, top + i, flips, inputs_.data() + i * shape_.band_row());
    }
    return inputs_.data();
  }

 private:
  void copy_row(const In* image, ptrdiff_t y, bool flips, In* to) const {
    const ptrdiff_t channels = shape_.channels, width = shape_.width;
    const bool inside = y >= 0 && y < shape_.height;
    const ptrdiff_t left = inside ? std::min(shape_.begin_x, shape_.columns()) : shape_.columns();
    const ptrdiff_t middle = std::min(width, shape_.columns() - left);
    to = std::fill_n(to, left * channels, padding_);
    if (middle > 0 && (channels_last_ || channels == 1)) {
      std::copy_n(image + y * width * channels, middle * channels, to);
    } else if (middle > 0) {
      for (ptrdiff_t channel = 0; channel < channels; ++channel) {
        const In* from = image + (channel * shape_.height + y) * width;
        for (ptrdiff_t x = 0; x < middle; ++x) to[x * channels + channel] = from[x];
      }
    }
    if constexpr (sizeof(In) == 1) {
      for (ptrdiff_t i = 0; flips && i < middle * channels; ++i) to[i] ^= 0x80;
    }
    std::fill_n(to + middle * channels, (shape_.columns() - left - middle) * channels, padding_);
  }

  const WindowShape& shape_;
  bool channels_last_;
  In padding_;
  std::vector<In, LineAllocator<In>> inputs_;
};

}  // namespace fcp
