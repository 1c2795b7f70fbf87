// line_rows.h on a CUDA device: each of its loops is one launch there, which reads coefficients
// that are alike for all rows, or numbers, once from where they lie. Builds with CUDA
// alone have it (cuda_kernels.h). Tested by tests/nn/kernels/cpu/line_rows_test.cc.
#pragma once

#include <torch/types.h>

#include "fcp/nn/kernels/cpu/line_rows.h"

namespace fcp {

bool takes_cuda_loops(const torch::Tensor& coefficients);

// As along_lines and row_reach, with lines and x [rows, D] of the type of a.
torch::Tensor along_lines_cuda(const torch::Tensor& a, const SideLines& lines, int64_t rows,
                               torch::Tensor& bias);
RowReach row_reach_cuda(const torch::Tensor& a, const torch::Tensor& x, const torch::Tensor& scale,
                        bool with_size);

}  // namespace fcp
