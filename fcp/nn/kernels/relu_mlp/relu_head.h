// A head of the shape Linear–ReLU–Linear, the paper's own, recognised in a network:
//
//   g(u) = W₂ max(0, W₁u + b₁) + b₂
//
// What such a head does to a step of gradient descent or to a ball of features is known in closed
// form, so that fast paths (fcp/search, fcp/bounds) start here. Recognised are Gemm, and MatMul
// with or without Add, with constant weights, and between them what changes no number: Identity,
// Dropout and Flatten. Tested by tests/nn/kernels/relu_mlp/relu_head_test.cc.
#pragma once

#include <cstddef>
#include <optional>

#include <torch/types.h>

#include "fcp/nn/runtime/network.h"

namespace fcp {

// Shapes: D features, H hidden units, K outputs. All float32, contiguous, on the head's device.
struct ReluHead {
  torch::Tensor w1;       // [H, D]
  torch::Tensor b1;       // [H]
  torch::Tensor w2;       // [K, H]
  torch::Tensor b2;       // [K]
  bool flattens = false;  // features of more than two dimensions are flattened first
};

// The head behind the output of that index, or nothing where it has another shape. Other outputs
// are not looked at.
std::optional<ReluHead> match_relu_head(const Network& head, size_t output);

// Whether these features, [N, D] or flattened to that, are what the head takes.
bool takes_features(const ReluHead& head, const torch::Tensor& features);

// Whether there are such features, and with them a truth for each row and output: [N, K], or
// anything of N rows that has as many numbers.
bool takes_rows(const ReluHead& head, const torch::Tensor& features, const torch::Tensor& truth);

}  // namespace fcp
