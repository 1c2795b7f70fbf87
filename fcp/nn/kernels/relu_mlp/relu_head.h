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
#include <string>

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

// Reads a network from one of its outputs back towards its input, step by step, for the fast paths
// that begin with recognising a shape: Linear–ReLU–Linear heads (relu_head.h) and chains of such
// layers (relu_layers.h). Each call goes back over what it recognises and stays where it is
// otherwise. Recognised as linear are Gemm, and MatMul with or without Add, with constant weights.
// Tested by tests/nn/kernels/relu_mlp/relu_head_test.cc and relu_layers_test.cc.

// float32, contiguous.
struct LinearLayer {
  torch::Tensor weight;  // [out, in]
  torch::Tensor bias;    // [out]
};

class BackwardReader {
 public:
  BackwardReader(const Network& network, int slot) : network_(network), slot_(slot) {}

  // Over steps that change no number: Identity, Dropout and Flatten.
  void skip_identities();

  // Over products with a constant, one number or one for each output, which are collected.
  torch::Tensor read_factors();

  bool read_relu();

  // Over `op`, Sub or Div, of rows and a constant row, which is returned; undefined where there is
  // none.
  torch::Tensor read_constant_row(const std::string& op);

  std::optional<LinearLayer> read_linear();

  // Whether the network's input has been reached.
  bool at_input() const;
  // The same, and the input is rows of features: a MatMul would take any rank.
  bool at_rows_of_features() const;
  bool flattened() const { return flattened_; }

 private:
  const Step* maker() const;
  torch::Tensor constant_at(const Step& step, size_t input) const;
  bool trains(const Step& step) const;
  std::optional<LinearLayer> read_gemm(const Step& step);

  const Network& network_;
  int slot_;
  bool flattened_ = false;
  bool only_rows_ = false;  // the layer read last takes nothing but matrices
};

}  // namespace fcp
