// Gradient descent through a head Linear–ReLU–Linear with one output on a CUDA device: all steps of
// all rows in one launch.
//
// Idea: as in front_layer.h a step is followed behind the first layer, p ← p − 2η r · K (D w₂) with
// K = W₁W₁ᵀ, r the residual and D the units that are on. One thread takes one row: p and the sum of
// the gradients stay in its registers, K in shared memory, so that between the first step and the
// last nothing waits for memory or for a launch.
// Assumes at most kReluDescentUnits hidden units (fewer are padded by units that are never on).
// Cost: hidden² multiply-adds per row and step.
// Tested by tests/search/surrogate_search_test.cc, which needs a CUDA device.
#pragma once

#include <torch/types.h>

namespace fcp {

constexpr int64_t kReluDescentUnits = 64;

// `hidden` [N, H] is W₁v + b₁ and `truth` [N]; gram [H, H], weight [H]; all float32 on one CUDA
// device. Returns Σ 2η r D w₂ over the steps, [N, H]: the surrogate feature is v − W₁ᵀ of it.
torch::Tensor relu_descent_cuda(const torch::Tensor& hidden, const torch::Tensor& truth,
                                const torch::Tensor& gram, const torch::Tensor& weight, double bias,
                                int steps, double rate);

}  // namespace fcp
