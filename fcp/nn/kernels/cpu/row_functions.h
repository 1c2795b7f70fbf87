// erf, softmax and layer normalisation of float32 numbers on the CPU, in one pass over each row and
// vectors of the processor's width (fcp/base/lanes.h):
//
//   erf_of         y_i = erf(x_i)
//   softmax_rows   y_i = exp(x_i − max x) / Σ_j exp(x_j − max x)
//   norm_rows      y_i = (x_i − m) / √(v + ε) · w_i + b_i,  m and v the row's mean and variance
//
// Sums run in one order that depends on the row's length alone, so the bits of a row do not depend
// on the rows beside it. Other types and devices take libtorch's functions, as do gradients
// (gradient_of.h). Assumes rows without gaps; others are copied. Cost: 1 to 2 ns per number.
// Tested by tests/nn/kernels/cpu/row_functions_test.cc.
#pragma once

#include <torch/types.h>

namespace fcp {

torch::Tensor erf_of(const torch::Tensor& x);

// Whether softmax_rows and norm_rows take x.
bool has_row_functions(const torch::Tensor& x);

// Along the last axis, which is not empty.
torch::Tensor softmax_rows(const torch::Tensor& x);

struct NormedRows {
  torch::Tensor y;
  torch::Tensor mean, inverse;  // one number for each row: m and 1 / √(v + ε)
};

// Rows of `width` numbers, as many as fill x; weight and bias [width], or undefined.
NormedRows norm_rows(const torch::Tensor& x, int64_t width, const torch::Tensor& weight,
                     const torch::Tensor& bias, double epsilon);

}  // namespace fcp
