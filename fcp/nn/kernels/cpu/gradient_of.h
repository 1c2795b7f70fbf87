// Operators whose loops are ours and whose gradient libtorch knows: where gradients are wanted both
// run, ours for the numbers and libtorch's for the backward pass. A network then gives the same
// bits with and without gradients. Tested by tests/nn/kernels/cpu/row_functions_test.cc.
#pragma once

#include <torch/types.h>

namespace fcp {

// Whether gradients are wanted of x.
bool wants_gradient(const torch::Tensor& x);

// `value` to whoever reads numbers; gradients go to `differentiable`, which is the same function up
// to rounding.
torch::Tensor with_gradient_of(const torch::Tensor& differentiable, const torch::Tensor& value);

}  // namespace fcp
