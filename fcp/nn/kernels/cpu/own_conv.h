// Walks of a window over planes that libtorch does with detours (other layouts and back, indices
// that nobody reads), done where the numbers lie, in float32 on the CPU:
//
//   pointwise    1 × 1, stride 1, one group: y[m, p] = Σ_c w[m, c] x[c, p] + b[m], a matrix product
//                (packed_product.h) over blocks of places p that fit the caches
//   depthwise    one filter per channel, two spatial axes: each plane is copied once into padded
//                rows, split by stride, so that every tap is a vector added to registers
//
//   largest      the largest number of each window, by the same walk as depthwise; padding is −∞
//
// Rule: is_pointwise, is_depthwise and has_planes below; everything else is libtorch's. Each number
// is one sequence of operations, so its bits do not depend on the batch. Without gradients
// (gradient_of.h).
// Cost: two operations per weight and place, and a copy of x. Tested by
// tests/nn/kernels/cpu/own_conv_test.cc.
#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

namespace fcp {

// x [N, C, H, W], w [M, C / groups, …]; padding at the beginning of an axis, and the output's size.
struct ConvPlan {
  std::vector<int64_t> strides, dilations, begins, ends;
  std::vector<int64_t> places;  // of the output
  int64_t groups = 1;
};

bool is_pointwise(const torch::Tensor& x, const torch::Tensor& w, const ConvPlan& plan);
bool is_depthwise(const torch::Tensor& x, const torch::Tensor& w, const ConvPlan& plan);

// Whether largest_in_windows takes x.
bool has_planes(const torch::Tensor& x, const ConvPlan& plan);

// x [N, C, H, W] and a window of `kernel`; the same bits as libtorch's, NaN included.
torch::Tensor largest_in_windows(const torch::Tensor& x, const std::vector<int64_t>& kernel,
                                 const ConvPlan& plan);

// bias [M], or undefined.
torch::Tensor pointwise_conv(const torch::Tensor& x, const torch::Tensor& w,
                             const torch::Tensor& bias);
torch::Tensor depthwise_conv(const torch::Tensor& x, const torch::Tensor& w,
                             const torch::Tensor& bias, const ConvPlan& plan);

}  // namespace fcp
