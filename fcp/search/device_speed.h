// What a device is good at.
#pragma once

#include <torch/types.h>

namespace fcp {

// Whether a CUDA device multiplies matrices of doubles at about the speed of floats, as those for
// computing centers do and those for games do not. False of the CPU. Builds with CUDA alone have it
// (cuda_kernels.h).
bool has_fast_doubles(torch::Device device);

}  // namespace fcp
