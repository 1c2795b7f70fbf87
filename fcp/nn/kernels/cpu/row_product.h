// Arithmetic whose bits do not depend on what stands beside a row. A library's matrix product takes
// another order of summation for other numbers of rows, and its vector loops another function for
// the last few numbers: equal rows of different batches then differ in their last bits, and with
// them ties between scores break, which on discrete data is worth several per cent of coverage.
//
// Here every number is computed by one sequence of operations, whatever the shape around it:
//
//   row_product   y = a · b        Σ_k a_ik b_kj, k rising (packed_product.h)
//   each_alike    y_i = f(x_i)     libtorch's f on tiles that its vectors fill without a remainder
//   sum_rows      y_i = Σ_j x_ij   in a fixed order; sum_along the same along any axes
//
// On the CPU, in float and double; elsewhere they are libtorch's own. Gradients flow through all of
// them, and the products of the backward pass are row products too.
//
// Cost: 2 N K M operations. Packing a right factor costs K M; a PackedCache keeps it. Tested by
// tests/nn/kernels/cpu/row_product_test.cc.
#pragma once

#include <functional>
#include <vector>

#include <torch/types.h>

#include "fcp/nn/kernels/cpu/epilogue.h"
#include "fcp/nn/kernels/cpu/packed_product.h"

namespace fcp {

// a [..., K] · b [K, M] + bias → [..., M]; bias undefined or something that broadcasts.
torch::Tensor row_product(const torch::Tensor& a, const torch::Tensor& b,
                          PackedCache* cache = nullptr, const torch::Tensor& bias = {});

// The same of float32 numbers on the CPU and what follows (epilogue.h), without gradients;
// undefined for other numbers, and where the bias is not [M] or the added tensor not of the
// product's shape.
torch::Tensor product_with_epilogue(const torch::Tensor& a, const torch::Tensor& b,
                                    PackedCache& cache, const Epilogue& epilogue);

// f, which computes each number by itself, of x.
torch::Tensor each_alike(const std::function<torch::Tensor(const torch::Tensor&)>& f,
                         const torch::Tensor& x);

// The sum of each row of x [N, …] → [N].
torch::Tensor sum_rows(const torch::Tensor& x);

// The sum of x along `axes`, which are sorted and counted from the front.
torch::Tensor sum_along(const torch::Tensor& x, const std::vector<int64_t>& axes, bool keep_axes);

// Σ_d a_snd b_nd of a [S, N, D] and b [N, D] → [S, N].
torch::Tensor row_dots(const torch::Tensor& a, const torch::Tensor& b);

// The product of two stacks of matrices, as attention takes it: each by packed_product.h, so that
// its bits do not depend on the matrices beside it. Views such as a transposed stack are read where
// they lie. On the CPU, in float and double; elsewhere it is libtorch's, and so are its gradients.
// Cost: 2 N K M operations per matrix, and K M to pack each right factor.
// Tested by tests/nn/kernels/cpu/packed_product_test.cc.

// a [..., N, K] · b [..., K, M] → [..., N, M], of two axes or more each; the axes in front
// broadcast.
torch::Tensor stack_product(const torch::Tensor& a, const torch::Tensor& b);

}  // namespace fcp
