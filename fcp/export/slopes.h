// The gradient of a perceptron written as ONNX nodes, and its dual norm: what `linearized` needs.
//
// Backwards from the outputs, J = ∂y/∂t for each tensor t on the way, [N, K, width of t]:
//
//   Gemm, MatMul     J ← J W                a constant until the first activation is met
//   activation f     J ← J ⊙ f'(t)          Relu: t > 0; Tanh: 1 − f²; …
//   Mul, Div by c    J ← J ⊙ c, J ⊙ 1/c;    Add, Sub of constants: J
//
// f' of a saturated Tanh or Sigmoid is a difference that cancels: it is known to within δ = 2^-22.
// The norm is therefore written larger by what A such activations can lose, A δ ‖Π |W|‖, with the
// largest slope of each activation on the way: whatever fcp computes is at most that.
//
// Assumes a chain of these operators over rows of numbers; another one is refused by its name.
// Cost: K times the products of the head. Tested by tests/export/export_test.cc.
#pragma once

#include <string>

#include <torch/types.h>

#include "fcp/bounds/ball.h"
#include "fcp/export/graph_builder.h"
#include "fcp/network/network.h"

namespace fcp {

// The dual norm of the gradient of each number of one output of the head, [N, K] or [1, K];
// `feature` [1, D] is an example.
std::string write_slopes(GraphBuilder& builder, const Network& head, size_t output,
                         const torch::Tensor& feature, Norm norm);

}  // namespace fcp
