// The walks of own_conv.h over images whose channels lie side by side (libtorch's channels-last
// layout), which is how dense_conv.h leaves them: nothing is copied, every tap of a window is a
// vector of channels where it lies. Row by row; in the middle of a row the windows of some places
// are summed side by side in registers, at its ends each place takes the taps that lie within the
// image.
//
// Each number is made by the same sequence of operations as in own_conv.h, but for products of
// padding with weights, which are left out: the same numbers in both layouts where the weights are
// finite. Rule: x of four axes, float32, CPU, no dilation, padding not negative (is_depthwise,
// has_planes). Cost: two operations per weight and place. Tested by
// tests/nn/kernels/cpu/own_conv_test.cc.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include <torch/types.h>

#include "fcp/base/lanes.h"
#include "fcp/nn/kernels/cpu/epilogue.h"
#include "fcp/nn/kernels/cpu/own_conv.h"
#include "fcp/nn/kernels/cpu/packed_product.h"

namespace fcp {

// The filters of a depthwise convolution, [taps][step], made once for constant ones.
struct ChannelWeights {
  FloatRows numbers;
  size_t step = 0;
  bool finite = false;
};
class ChannelFilters {
 public:
  std::shared_ptr<const ChannelWeights> packed(const torch::Tensor& w);

 private:
  std::mutex mutex_;
  KnownTensor source_;
  std::shared_ptr<const ChannelWeights> packed_;
};

// Both return channels-last tensors. bias [C], or undefined; Epilogue::bias is not looked at. The
// weights are finite.
torch::Tensor depthwise_channels(const torch::Tensor& x, const torch::Tensor& w,
                                 const torch::Tensor& bias, const ConvPlan& plan,
                                 const ChannelWeights& weights, const Epilogue& epilogue = {});
// Of bytes too.
torch::Tensor largest_in_channel_windows(const torch::Tensor& x, const std::vector<int64_t>& kernel,
                                         const ConvPlan& plan);

}  // namespace fcp
