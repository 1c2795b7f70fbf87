// Σ over the places of each channel, of images whose channels lie side by side: a vector of
// channels at a time, in the order of sum_rows (row_product.h), hence with its bits. Float32 on the
// CPU, four axes, without gradients. Cost: one pass. Tested by
// tests/nn/kernels/cpu/dense_conv_test.cc.
#pragma once

#include <torch/types.h>

namespace fcp {

// x [N, C, H, W] → [N, C, 1, 1].
torch::Tensor channel_sums(const torch::Tensor& x);

// Whether the channels of x [N, C, H, W] lie side by side, and not the places.
bool channels_lie_last(const torch::Tensor& x);

}  // namespace fcp
