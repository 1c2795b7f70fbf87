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

}  // namespace fcp
