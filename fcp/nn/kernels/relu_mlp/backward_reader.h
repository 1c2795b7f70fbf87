// Reads a network from one of its outputs back towards its input, step by step, for the fast paths
// that begin with recognising a shape: Linear–ReLU–Linear heads (relu_head.h) and chains of such
// layers (relu_layers.h). Each call goes back over what it recognises and stays where it is
// otherwise. Recognised as linear are Gemm, and MatMul with or without Add, with constant weights.
// Tested by tests/nn/kernels/relu_mlp/relu_head_test.cc and relu_layers_test.cc.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <torch/types.h>

#include "fcp/nn/runtime/network.h"

namespace fcp {

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
