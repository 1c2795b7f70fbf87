// monotone_rows.h on a CUDA device: scores whose region is one interval for each row and output,
// all rows in one launch, a thread for each.
//
// The score is the least radius whose interval holds y, found by the very function that makes the
// interval (least_radius.h), in double precision and with nothing fused: the law is exact, and the
// same outputs of a network give the same bits as on the CPU.
//
// Builds with CUDA alone have it (cuda_kernels.h). Cost: a few intervals per row and output; one of
// GrownCuda takes O(Q) steps.
// Tested by tests/methods/scores/cuda_test.cc, which needs a CUDA device.
#pragma once

#include <vector>

#include <torch/types.h>

#include "fcp/methods/scores/score.h"

namespace fcp {

// [low − r · width, high + r · width]; empty where r < 0 and the radii begin at zero. All [N, K]
// doubles on the device; NaN: the network's answer is none.
struct MovedCuda {
  torch::Tensor prediction, low, high, width;
  bool from_zero = false;
};

// The interval of density.h around a center, over quantiles [N, K · Q] that ascend in each run.
struct GrownCuda {
  torch::Tensor prediction, quantiles;
};

std::vector<double> scores_cuda(const MovedCuda& rows, const torch::Tensor& truth);
std::vector<double> scores_cuda(const GrownCuda& rows, const torch::Tensor& truth);

// The radius is [N, 1].
Regions regions_cuda(const MovedCuda& rows, const torch::Tensor& radius);
Regions regions_cuda(const GrownCuda& rows, const torch::Tensor& radius);

}  // namespace fcp
