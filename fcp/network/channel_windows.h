// The walks of own_conv.h over images whose channels lie side by side (libtorch's channels-last
// layout), which is how dense_conv.h leaves them: sixteen channels of some rows at a time are
// copied into a padded image of their own, small enough for the caches, and every tap of a window
// is then a vector of channels; windows of several places are summed side by side in registers.
//
// Each number is made by the same sequence of operations as in own_conv.h, hence the same bits in
// both layouts. Rule: x of four axes, float32, CPU, no dilation, padding not
// negative (is_depthwise, has_planes). Cost: two operations per weight and place, and a copy of x.
// Tested by tests/network/dense_conv_test.cc.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include <torch/types.h>

#include "fcp/base/lanes.h"
#include "fcp/network/finish.h"
#include "fcp/network/own_conv.h"
#include "fcp/network/packed_cache.h"

namespace fcp {

// The filters of a depthwise convolution, [C / 16][taps][16], made once for constant ones.
class ChannelFilters {
 public:
  std::shared_ptr<const FloatRows> packed(const torch::Tensor& w);

 private:
  std::mutex mutex_;
  KnownTensor source_;
  std::shared_ptr<const FloatRows> packed_;
};

// Both return channels-last tensors. bias [C], or undefined; Finish::bias is not looked at.
torch::Tensor depthwise_channels(const torch::Tensor& x, const torch::Tensor& w,
                                 const torch::Tensor& bias, const ConvPlan& plan,
                                 ChannelFilters& filters, const Finish& finish = {});
torch::Tensor largest_in_channel_windows(const torch::Tensor& x, const std::vector<int64_t>& kernel,
                                         const ConvPlan& plan);

}  // namespace fcp
