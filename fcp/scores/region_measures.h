// Length and membership of regions, whether they are intervals or unions of intervals.
#pragma once

#include <vector>

#include <torch/types.h>

#include "fcp/conformal/interval.h"
#include "fcp/scores/score.h"

namespace fcp {

// The length of the interval, or of all intervals of the union, of each row and output: [N, K].
// 0 where empty, +∞ where an end is infinite.
torch::Tensor region_lengths(const Regions& regions);

// Whether each row's truth [N, K] is in its region, in all outputs: [N] bool.
torch::Tensor in_regions(const Regions& regions, const torch::Tensor& truth);

// Regions of N × K unions, row by row, each of intervals that ascend; `lower` and `upper` are then
// the ends of the smallest interval around all of them.
Regions regions_of_unions(const torch::Tensor& prediction,
                          const std::vector<std::vector<Interval>>& unions);

}  // namespace fcp
