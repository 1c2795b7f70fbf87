// The gradient of a head written as ONNX nodes, and its dual norm: what `linearized` needs.
//
// Backwards from the outputs, J = ∂y/∂t for each tensor t, [N, K, numbers of t], which its readers
// add up:
//
//   affine operators A   J ← J A                a constant until the first activation is met
//   activation f         J ← J ⊙ f'(t)          Relu: t > 0; Tanh: 1 − f²; …
//   a · b, a / b         J ⊙ b and J ⊙ a, …     of equal shapes
//
// f' of a saturated Tanh or Sigmoid is a difference that cancels: it is known to within δ = 2^-22.
// The norm is therefore written larger by what A such activations can lose, A δ ‖Π |W|‖, with the
// largest slope of each activation on the way: whatever fcp computes is at most that.
//
// Assumes these operators over rows; another one is refused by its name.
// Cost: K times the products of the head. Tested by tests/export/export_test.cc.
#pragma once

#include <string>

#include <torch/types.h>

#include "fcp/bounds/bounds.h"
#include "fcp/export/graph_builder.h"
#include "fcp/nn/runtime/network.h"

namespace fcp {

// The dual norm of the gradient of each number of one output of the head, in its shape, of N rows
// or one for all; `feature` [1, …] is an example.
std::string write_gradients(GraphBuilder& builder, const Network& head, size_t output,
                            const torch::Tensor& feature, Norm norm);

}  // namespace fcp
