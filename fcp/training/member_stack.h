// Perceptrons of one shape side by side: S networks, each with its own rows, in batched products.
//
//   a₁ = x diag(s) W₁ + b₁,   hₗ = dropout(relu(aₗ)),   aₗ₊₁ = hₗ Wₗ₊₁ + bₗ₊₁,   output = a_L
//
// s, one number per input and 1 at the start, learns which inputs matter (the scaling layer of
// RealMLP, Holzmüller et al., "Better by default", 2024); it is part of W₁ once training is done.
// Shapes: S networks, N rows of each, F inputs, O outputs, P parameters.
//
// Parameters lie in one tensor [S, P], so that an optimiser, a copy of the best weights and leaving
// networks out are one call each. Gradients are written out by hand: six products per layer and
// step, no input gradient, and the gradient of s from that of diag(s) W₁ without a product.
// Runs on the device of its parameters. Tested by tests/training/member_stack_test.cc.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <torch/types.h>

#include "fcp/base/random.h"

namespace fcp {

struct StackShape {
  int64_t inputs = 1;
  std::vector<int64_t> hidden{256, 256, 128};
  int64_t outputs = 1;

  int64_t layers() const { return static_cast<int64_t>(hidden.size()) + 1; }
  int64_t layer_inputs(int64_t layer) const;  // layers count from 0
  int64_t layer_outputs(int64_t layer) const;
  int64_t parameters() const;
};

// Tensors of one layer of all networks, as views of a tensor [S, P].
struct StackLayer {
  torch::Tensor weight;  // [S, inputs, outputs]
  torch::Tensor bias;    // [S, 1, outputs]
};

struct StackViews {
  torch::Tensor scale;  // s, [S, F]
  std::vector<StackLayer> layers;
};

// The parameters of a network: s, then weight and bias of each layer.
StackViews stack_views(const torch::Tensor& parameters, const StackShape& shape);

// [S, P]: s = 1, weights and biases uniform in ±1/√inputs of their layer; one seed per network.
torch::Tensor initial_stack(const StackShape& shape, std::span<const uint64_t> seeds);

// Masks of dropout, 0 or 1/(1 − rate). Random numbers cost more than the products of small
// networks, so masks are windows at random places of one long row of them, made once.
class DropoutMasks {
 public:
  DropoutMasks(double rate, int64_t largest, uint64_t seed, torch::Device device);

  double rate() const { return rate_; }
  torch::Tensor next(at::IntArrayRef shape);

 private:
  double rate_;
  Random random_;
  torch::Tensor row_;
};

class MemberStack {
 public:
  // Trains `parameters` [S, P] in place.
  MemberStack(const StackShape& shape, torch::Tensor parameters);

  const StackShape& shape() const { return shape_; }
  int64_t networks() const { return parameters_.size(0); }
  torch::Tensor& parameters() { return parameters_; }
  torch::Tensor& gradient() { return gradient_; }

  // x [S, N, F] → [S, N, O], as used after training.
  torch::Tensor forward(const torch::Tensor& x) const;

  // The same with dropout, keeping what backward() needs.
  torch::Tensor forward(const torch::Tensor& x, DropoutMasks& masks);

  // The gradient of a loss whose gradient with respect to the output is [S, N, O].
  void backward(const torch::Tensor& output_gradient);

  // Goes on with these networks only.
  void keep(const torch::Tensor& networks);

 private:
  void first_layer_gradient(const torch::Tensor& slope);

  StackShape shape_;
  torch::Tensor parameters_;
  torch::Tensor gradient_;
  StackViews weights_;
  StackViews slopes_;
  torch::Tensor x_;
  std::vector<torch::Tensor> hidden_;
  double kept_ = 1;  // 1 − rate of the dropout of the last forward
};

// Adam (Kingma and Ba, 2015) for a stack of networks: parameters [S, P] at once, with a rate of
// their own for the first `scales` parameters of each network. On the CPU one pass over memory,
// shared among libtorch's threads; elsewhere libtorch's own operations.
// Tested by tests/training/member_stack_test.cc.

class StackAdam {
 public:
  StackAdam(const torch::Tensor& parameters, int64_t scales, double scale_factor);

  // The rate of the first `scales` parameters is `rate` times scale_factor.
  void step(torch::Tensor& parameters, const torch::Tensor& gradient, double rate);

  void keep(const torch::Tensor& networks);

 private:
  int64_t scales_;
  double scale_factor_;
  int64_t steps_ = 0;
  torch::Tensor mean_;
  torch::Tensor square_;
};

// One step on `count` numbers: root = 1/√(1 − β₂ᵗ), and `rate` holds 1/(1 − β₁ᵗ).
void adam_pass(float* parameters, const float* gradient, float* mean, float* square, int64_t count,
               float rate, float root);

}  // namespace fcp
