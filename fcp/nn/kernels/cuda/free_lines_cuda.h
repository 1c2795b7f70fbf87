// Lines in place of a hinge whose slopes below are free, as α-CROWN searches them, on a CUDA
// device: out = a · slope and Σ a · intercept of coefficients a [S, N, …], with gradients to a and
// to the free slopes, each way in one launch. By libtorch's operators it would be twenty, each of
// which reads and writes all coefficients. Builds with CUDA alone have it
// (cuda_kernels.h).
// Tested by tests/nn/kernels/cpu/line_rows_test.cc.
#pragma once

#include <torch/types.h>

namespace fcp {

// Whether `a` is of N rows on a CUDA device.
bool takes_free_lines_cuda(const torch::Tensor& a, int64_t rows);

struct OneHinge {
  torch::Tensor slope, bias;  // the free slopes [S, N, …], and their intercepts [N, …]
  torch::Tensor fixed_slope, fixed_bias;  // [N, …]
  bool plus = true;                       // the free ones serve coefficients above 0
};

struct HingeResult {
  torch::Tensor out;   // as a
  torch::Tensor sums;  // [S, N]
};
HingeResult along_free_lines_cuda(const torch::Tensor& a, const OneHinge& lines);

}  // namespace fcp
