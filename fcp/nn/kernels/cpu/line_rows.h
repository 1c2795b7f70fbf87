// The loops of linear bounds over coefficients [S, N, D], for S bounded numbers of N rows, that
// meet numbers per row [N, D]: lines put in place of a curve, and weighted sums. Each goes over the
// coefficients once and makes no tensor on the way, where libtorch's operators would make six.
//
// Every sum is taken in one order, whatever stands beside its row: in eight parts, folded at last.
// In float and double, and without gradients, on the CPU, and in launches of our own on a CUDA
// device (line_rows_cuda.h), where a sum is taken in as many parts as threads share it; takes_loops
// says whether.
//
// Cost: one read of the coefficients, and one write for the lines.
// Tested by tests/nn/kernels/cpu/line_rows_test.cc.
#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

namespace fcp {

bool takes_loops(const torch::Tensor& coefficients);

// Slopes and intercepts [N', …] for coefficients above 0, and for those below.
struct SideLines {
  torch::Tensor plus_slope, plus_bias, minus_slope, minus_bias;
};

// a [S, N', …], where N' is a multiple of `rows`: a⁺ · plus_slope + a⁻ · minus_slope in its shape;
// Σ a⁺ · plus_bias + a⁻ · minus_bias of each row is added to `bias` [S, rows]. An intercept may be
// infinite where a is 0.
torch::Tensor along_lines(const torch::Tensor& a, const SideLines& lines, int64_t rows,
                          torch::Tensor& bias);

// Σ a·x, or Σ |a|·x, of each row [S, rows]; x [N', …] may be infinite where a is 0.
torch::Tensor weighted_sums(const torch::Tensor& a, const torch::Tensor& x, int64_t rows,
                            bool magnitude = false);

// Σ a·x, Σ |a·scale| and, where asked for, Σ |a·x| of each row, of a [S, N, D], x [N, D] and scale
// [D], 1 where undefined.
struct RowReach {
  torch::Tensor value, reach, size;
};
RowReach row_reach(const torch::Tensor& a, const torch::Tensor& x, const torch::Tensor& scale,
                   bool with_size);

// Whether any of a [rows, C, places] is not 0, by place; on the CPU.
std::vector<bool> used_places(const torch::Tensor& a);

}  // namespace fcp
