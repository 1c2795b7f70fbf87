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

// How far each truth [N, K] lies outside its region: 0 inside, of a union the distance to the
// nearest of its intervals, +∞ where that is empty. With it the interval score of Winkler is
// length + (2/α) · distance (evaluation/length.h). [N, K].
torch::Tensor region_distances(const Regions& regions, const torch::Tensor& truth);

// Whether each row's truth [N, K] is in its region, in all outputs: [N] bool.
torch::Tensor in_regions(const Regions& regions, const torch::Tensor& truth);

// Regions of N × K unions, row by row, each of intervals that ascend; `lower` and `upper` are then
// the ends of the smallest interval around all of them.
Regions regions_of_unions(const torch::Tensor& prediction,
                          const std::vector<std::vector<Interval>>& unions);

}  // namespace fcp
