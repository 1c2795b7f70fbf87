// Tensors in and out of a calibrated predictor, for those who have libtorch at hand.
#pragma once

#include <vector>

#include <torch/types.h>

#include "fcp/fcp.h"

namespace fcp {

// One interval for each row and output, or one set of labels for each row.
struct TensorRegions {
  torch::Tensor prediction;  // [N, K]; of labels [N, 1]
  torch::Tensor lower;       // [N, K] doubles; undefined for labels
  torch::Tensor upper;       // [N, K] doubles; undefined for labels
  torch::Tensor members;     // [N, C] bool; undefined for intervals
};

// x [N, …] on any device; `info` as of ConformalPredictor::intervals.
TensorRegions regions(const ConformalPredictor& predictor, const torch::Tensor& x,
                      const Level& level, const RowInfo& info = {});

// The feature of each row, where the network is cut.
torch::Tensor features(const ConformalPredictor& predictor, const torch::Tensor& x);

// How strange y [N, K] (labels: [N, 1]) is, N × sides, row by row.
std::vector<double> scores(const ConformalPredictor& predictor, const torch::Tensor& x,
                           const torch::Tensor& y);

}  // namespace fcp
