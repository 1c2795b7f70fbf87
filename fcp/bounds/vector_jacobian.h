// Coefficients of an operator's inputs from those of its outputs, Σ a·f(x) = Σ (a·f') x, by
// autograd through the operator: the vector-Jacobian product of S linear functions at once. The
// same for all S; one after the other where the function knows its number of rows, as a Reshape
// with the batch in its shape does. Cost: a forward and a backward for S · N rows. Tested by
// tests/bounds/rules_test.cc.
#pragma once

#include <functional>
#include <vector>

#include "fcp/bounds/linear_step.h"

namespace fcp {

using LinearFunction = std::function<Tensors(const Tensors&)>;

// Coefficients [S, N, …] of the outputs, undefined where they do not matter, to those of the inputs
// that vary.
Tensors vector_jacobian(const LinearFunction& function, const LinearStep& step,
                        const Tensors& coefficients);

// Zeros of this shape that take no memory.
torch::Tensor zeros_like_shape(const torch::Tensor& like, std::vector<int64_t> shape);

}  // namespace fcp
