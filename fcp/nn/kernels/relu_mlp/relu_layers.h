// The fast path of backbones that are perceptrons: chains of linear layers, with or without a ReLU
// behind each, after an optional standardisation (x − mean) / deviation of the rows. A block of
// rows goes through all layers while it is in the first cache (affine_rows.h). Results agree with
// the network's own up to rounding, and do not depend on what rows are computed together.
//
// The rule: all layers float32 on the CPU, their weights 256 KiB at most, and rows of two
// dimensions that ask for no gradient. Tested by tests/nn/kernels/relu_mlp/relu_layers_test.cc.
#pragma once

#include <optional>
#include <vector>

#include <torch/types.h>

#include "fcp/nn/kernels/relu_mlp/affine_rows.h"
#include "fcp/nn/runtime/network.h"

namespace fcp {

struct ReluLayer {
  AffineRows affine;
  Activation activation = Activation::kNone;
};

struct ReluLayers {
  std::vector<float> mean, deviation;  // one for each input; empty: as they are
  std::vector<ReluLayer> layers;
};

// The layers behind the network's only output, or nothing where the rule does not hold.
std::optional<ReluLayers> match_relu_layers(const Network& network);

bool takes_rows(const ReluLayers& chain, const torch::Tensor& x);

// x [N, inputs] → [N, outputs].
torch::Tensor run_layers(const ReluLayers& chain, const torch::Tensor& x);

}  // namespace fcp
