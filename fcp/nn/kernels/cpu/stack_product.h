// The product of two stacks of matrices, as attention takes it: each by packed_product.h, so that
// its bits do not depend on the matrices beside it. Views such as a transposed stack are read where
// they lie. On the CPU, in float and double; elsewhere it is libtorch's, and so are its gradients.
// Cost: 2 N K M operations per matrix, and K M to pack each right factor.
// Tested by tests/nn/kernels/cpu/packed_product_test.cc.
#pragma once

#include <torch/types.h>

namespace fcp {

// a [..., N, K] · b [..., K, M] → [..., N, M], of two axes or more each; the axes in front
// broadcast.
torch::Tensor stack_product(const torch::Tensor& a, const torch::Tensor& b);

}  // namespace fcp
