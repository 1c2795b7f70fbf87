// Convolutions that sum over all channels, in float32 on the CPU, over images whose channels lie
// side by side (libtorch's channels-last layout):
//
//   y[p, m] = Σ_t Σ_c x[p·stride + t·dilation, c] w[t, c, m] + b[m]
//
// is a matrix product whose left rows are the windows, and in which nothing is copied for a window.
// Of few channels, or of few numbers in a window, bands of the image are copied once, with the
// padding around them (window_bands.h): there a window is as many pieces as it has rows, and the
// windows of a row lie a stride apart (window_tile.h). Of many channels the pieces are the channels
// of each tap (packed_product.h); a tap outside of the image is a piece of zeros, and left out
// where all windows of a strip have it there, and windows of several images are rows of one
// product. The filters are packed once. What follows (epilogue.h) is done by either.
//
// Rule: is_dense below. Each number is one sequence of operations, but for products of padding with
// weights, which are left out only where all weights are finite and a sum stays the same to the
// last bit: the bits do not depend on the batch or on threads.
// Cost: 2 · taps · C · M per place, at the speed of a matrix product.
// Reference: M. Dukhan, The Indirect Convolution Algorithm, 2019. Tested by
// tests/nn/kernels/cpu/dense_conv_test.cc.
#pragma once

#include <torch/types.h>

#include "fcp/nn/kernels/cpu/epilogue.h"
#include "fcp/nn/kernels/cpu/own_conv.h"
#include "fcp/nn/kernels/cpu/row_product.h"

namespace fcp {

// Two spatial axes, one group, padding not negative.
bool is_dense(const torch::Tensor& x, const torch::Tensor& w, const ConvPlan& plan);

// x [N, C, H, W] in any layout, w [M, C, …], bias [M] or undefined; channels-last. Epilogue::bias
// is not looked at.
torch::Tensor dense_conv(const torch::Tensor& x, const torch::Tensor& w, const torch::Tensor& bias,
                         const ConvPlan& plan, PackedCache& cache, const Epilogue& epilogue = {});

// `value`, the convolution of x, with its gradient: the transposed convolution, by libtorch.
torch::Tensor with_conv_gradient(const torch::Tensor& x, const torch::Tensor& w,
                                 const torch::Tensor& value, const ConvPlan& plan);

}  // namespace fcp
