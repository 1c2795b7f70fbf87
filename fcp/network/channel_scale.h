// One scale and one shift for each channel, y = a_c x + b_c, and what follows (finish.h), in one
// pass: normalisation by given statistics. Float32 on the CPU, x [N, C, …] in any layout, the same
// bits in each; without gradients. Tested by tests/network/dense_conv_test.cc.
#pragma once

#include <vector>

#include <torch/types.h>

#include "fcp/network/finish.h"

namespace fcp {

// scale and shift [C]; Finish::bias and Finish::added are not looked at. Lies in memory as x does.
torch::Tensor scaled_channels(const torch::Tensor& x, const std::vector<float>& scale,
                              const std::vector<float>& shift, const Bending& activation = {});

}  // namespace fcp
