// Index tensors of the gathering and scattering operators, checked before libtorch sees them.
#pragma once

#include <vector>

#include <torch/types.h>

#include "fcp/nn/graph/graph.h"

namespace fcp {

constexpr int64_t kMaxIndexRank = 16;

// The indices as int64 in [0, size) on `device`; those below 0 count from the end. An Error names
// the node and the first index outside.
torch::Tensor checked_indices(const torch::Tensor& indices, int64_t size, const Node& node,
                              torch::Device device);

// `indices` is no larger than `data` along every axis but `axis`.
void expect_inside(const torch::Tensor& indices, const torch::Tensor& data, int64_t axis,
                   const Node& node);

// The columns of [..., D]: checked indices into the axes batch … batch + D − 1 of the data.
std::vector<torch::Tensor> index_columns(const torch::Tensor& indices, const torch::Tensor& data,
                                         int64_t batch, const Node& node);

// How a scattered number meets the one that is there.
enum class ScatterReduction { kReplace, kAdd, kMultiply, kMax, kMin };

}  // namespace fcp
