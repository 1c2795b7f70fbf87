// The transposed convolution by which linear bounds go back through a convolution, on a CUDA
// device, for convolutions of few channels: there are as many images as rows times bounded numbers,
// each of them small, which libraries for networks are slow at. Builds with CUDA alone have it
// (cuda_kernels.h).
//
// Cost: 2 · (filters of a group) · (windows that a number is in) operations per number.
// Tested by tests/nn/kernels/cpu/line_rows_test.cc.
#pragma once

#include <torch/types.h>

#include "fcp/nn/kernels/cpu/own_conv.h"

namespace fcp {

// Coefficients a [images, M, h, w] of the outputs, weights w [M, C / group, kernel].
bool takes_conv_back_cuda(const torch::Tensor& a, const torch::Tensor& w, const ConvPlan& plan);

// Those of the inputs, [images, C, H, W]; gradients flow to a.
torch::Tensor conv_back_cuda(const torch::Tensor& a, const torch::Tensor& w, const ConvPlan& plan,
                             int64_t high, int64_t wide);

}  // namespace fcp
