// One scale and one shift for each channel, y = a_c x + b_c, and what follows (epilogue.h), in one
// pass: normalisation by given statistics. x may be given in parts whose channels lie side by side
// and are joined on the way. Float32 on the CPU, x [N, C, …] in any layout, the same bits in each;
// without gradients. Tested by tests/nn/kernels/cpu/channel_scale_test.cc.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include <torch/types.h>

#include "fcp/nn/kernels/cpu/epilogue.h"
#include "fcp/nn/kernels/cpu/packed_product.h"

namespace fcp {

struct ChannelLines {
  std::vector<float> scale, shift;
};

// The lines of the last statistics asked about, a = scale / √(variance + ε), b = bias − mean · a,
// in double precision and rounded; made once for constant ones.
class LineCache {
 public:
  // scale, bias, mean, variance [C], float32 on the CPU.
  std::shared_ptr<const ChannelLines> lines(const std::vector<torch::Tensor>& statistics,
                                            double epsilon);

 private:
  std::mutex mutex_;
  std::vector<KnownTensor> sources_;
  double epsilon_ = 0;
  std::shared_ptr<const ChannelLines> lines_;
};

// Lies in memory as x does.
torch::Tensor scaled_channels(const torch::Tensor& x, const ChannelLines& lines,
                              const FusedActivation& activation = {});

// Whether these are images of one size whose channels can be joined where they lie side by side.
bool join_side_by_side(const std::vector<torch::Tensor>& parts);

// The channels of all parts, side by side; `lines` may be null.
torch::Tensor joined_channels(const std::vector<torch::Tensor>& parts, const ChannelLines* lines,
                              const FusedActivation& activation = {});

// Σ over the places of each channel, of images whose channels lie side by side: a vector of
// channels at a time, in the order of sum_rows (row_product.h), hence with its bits. Float32 on the
// CPU, four axes, without gradients. Cost: one pass. Tested by
// tests/nn/kernels/cpu/dense_conv_test.cc.

// x [N, C, H, W] → [N, C, 1, 1].
torch::Tensor channel_sums(const torch::Tensor& x);

// Whether the channels of x [N, C, H, W] lie side by side, and not the places.
bool channels_lie_last(const torch::Tensor& x);

}  // namespace fcp
