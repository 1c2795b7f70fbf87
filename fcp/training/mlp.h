// A multi-layer perceptron: linear layers with ReLU between them. With the default widths it is the
// paper's network, Linear(p,64) ReLU Dropout Linear(64,64) ReLU | Linear(64,64) ReLU Dropout
// Linear(64,out), the bar being where the paper cuts.
//
// All weights lie in one flat tensor, layer by layer, weight before bias; the layers are views into
// it, so an optimiser can walk over all of them at once.
// Tested by tests/training/mlp_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <torch/types.h>

#include "fcp/base/random.h"

namespace fcp {

struct MlpOptions {
  int64_t inputs = 1;
  std::vector<int64_t> hidden{64, 64, 64};  // empty: one linear layer
  int64_t outputs = 1;
};

// y = x Wᵀ + b
struct DenseLayer {
  torch::Tensor weight;  // [outputs, inputs]
  torch::Tensor bias;    // [outputs]
};

class Mlp {
 public:
  // All weights zero.
  explicit Mlp(const MlpOptions& options);

  // Copies own their weights; the views of a copy point into the copy.
  Mlp(const Mlp& other);
  Mlp& operator=(const Mlp& other);
  Mlp(Mlp&&) = default;
  Mlp& operator=(Mlp&&) = default;
  ~Mlp() = default;

  const MlpOptions& options() const { return options_; }
  const std::vector<DenseLayer>& layers() const { return layers_; }
  std::span<float> parameters();
  std::span<const float> parameters() const;

  // A tensor for the gradient of all parameters, as a network whose layers are the gradients.
  Mlp zeros_like() const { return Mlp(options_); }

  // x [N, inputs] → [N, outputs], as used after training: without dropout.
  torch::Tensor forward(const torch::Tensor& x) const;

 private:
  MlpOptions options_;
  torch::Tensor flat_;
  std::vector<DenseLayer> layers_;
};

// PyTorch's default initialisation: weights and biases uniform in ±1/√inputs of their layer (which
// is Kaiming's uniform distribution with a = √5). Drawn in the order of the flat tensor.
Mlp initial_mlp(const MlpOptions& options, uint64_t seed);

// Whether dropout follows hidden layer `index` (from 0): after the first, the third, and so on. For
// three layers that is what the paper's code does.
inline bool has_dropout(size_t index) { return index % 2 == 0; }

// Two networks of the same inputs and as many hidden layers side by side, as one: block-diagonal
// weights, outputs of `first` before those of `second`. Each hidden layer holds the features of
// both, so one tensor cuts the pair, and it is the same function: the zeros between the blocks
// add nothing to values, gradients or bounds.
Mlp join_networks(const Mlp& first, const Mlp& second);

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
// Tested by tests/training/mlp_test.cc against autograd.

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
