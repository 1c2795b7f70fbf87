// Forward and backward through an Mlp for one batch of training, in buffers that are made once.
//
//   forward    z_i = h_{i-1} W_iᵀ + b_i,   h_i = relu(z_i) · c_i / (1 − p)    c: dropout's coins
//   backward   δ_i = ∂L/∂z_i,  ∂L/∂W_i = δ_iᵀ h_{i-1},  ∂L/∂b_i = Σ_rows δ_i,
//              δ_{i-1} = (δ_i W_i) · [h_{i-1} > 0] / (1 − p)
//
// h_i > 0 exactly where the ReLU was open and the coin said keep, so neither needs remembering. A
// step of the paper's network is 3 million multiplications, too few to pay for building and walking
// autograd's graph of some thirty nodes.
// Cost: three products of [batch, in] by [in, out] a layer (two for the first).
// Tested by tests/training/backpropagation_test.cc against autograd.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <torch/types.h>

#include "fcp/base/random.h"
#include "fcp/training/mlp.h"

namespace fcp {

class Backpropagation {
 public:
  // Refers to the weights of `mlp` as they are at each call. At most `most_rows` rows at a time.
  Backpropagation(const Mlp& mlp, int64_t most_rows, double dropout);

  // The [rows, inputs] numbers of the next batch, for the caller to fill.
  std::span<float> inputs(int64_t rows);

  // The [rows, outputs] predictions; dropout only where `random` is given.
  std::span<const float> forward(Random* random);

  // Where the caller puts ∂L/∂predictions, [rows, outputs], before backward().
  std::span<float> output_gradient();

  // The gradient of all parameters in their flat order. Follows a forward() with dropout, unless
  // dropout is 0.
  std::span<const float> backward();

 private:
  void resize(int64_t rows);
  void activate(size_t layer, Random* random);

  Mlp gradient_;
  int64_t rows_ = 0;
  double dropout_;
  std::vector<DenseLayer> layers_;
  std::vector<torch::Tensor> transposed_;     // weights, [in, out]
  std::vector<torch::Tensor> value_buffers_;  // h_i of most_rows rows; the input first
  std::vector<torch::Tensor> delta_buffers_;  // δ_i likewise; the input has none
  std::vector<torch::Tensor> values_;         // views of `rows_` rows
  std::vector<torch::Tensor> deltas_;
  std::vector<torch::Tensor> transposed_deltas_;
};

}  // namespace fcp
