// Tensors in and out of a Predictor, for those who have libtorch at hand. Of the public headers
// this one alone includes libtorch.
#pragma once

#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/predictor.h"

namespace fcp {

// One interval for each row and output, or one set of labels for each row; on the predictor's
// device, in double precision.
struct TensorRegions {
  torch::Tensor prediction = {};  // [N, K]; of labels [N, 1]
  torch::Tensor lower = {};       // [N, K] doubles; undefined for labels
  torch::Tensor upper = {};       // [N, K] doubles; undefined for labels
  torch::Tensor members = {};     // [N, C] bool, of pixels [N, C, P]; undefined for intervals
  torch::Tensor parts = {};  // [N, K, P, 2]: the intervals of a union, then empty ones; undefined
                             // where each region is one interval
};

// x [N, …] of any type and on any device, [N] being read as [N, 1]; sizes that the network leaves
// open are those of x. Several inputs stand side by side, [N, row_size()]. The batch shares the
// memory of x where its type is that of the network: x must not change while the batch is used.
Batch encode(const InputSchema& schema, const torch::Tensor& x, const RowInfo& info = {});

// The regions at the level that is `level`th in the answer; without levels the prediction alone.
TensorRegions tensors(const Answer& answer, size_t level = 0);

// The feature of each row, where the network is cut.
torch::Tensor features(const Predictor& predictor, const Batch& batch);

// How unusual y [N, K] (labels: [N, 1]) is, [N × sides], row by row. NaN where y or the network's
// answer is.
std::vector<double> scores(const Predictor& predictor, const Batch& batch, const torch::Tensor& y);

// The same in one call.
inline TensorRegions regions(const Predictor& predictor, const torch::Tensor& x, const Level& level,
                             const RowInfo& info = {}) {
  return tensors(predictor.predict(encode(predictor.schema(), x, info), {level}));
}
inline torch::Tensor features(const Predictor& predictor, const torch::Tensor& x) {
  return features(predictor, encode(predictor.schema(), x));
}
inline std::vector<double> scores(const Predictor& predictor, const torch::Tensor& x,
                                  const torch::Tensor& y) {
  return scores(predictor, encode(predictor.schema(), x), y);
}

}  // namespace fcp
