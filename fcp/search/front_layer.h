// The first layer of a head, where it multiplies: p = A u + b. Gradient descent on u can then be
// followed behind that layer, in p, where it is cheaper.
//
// Idea: with g the gradient with respect to p, a step in u is u − η Aᵀ g, so that
//   p ← p − η (A Aᵀ) g,     u = v − η Aᵀ Σ g   at the end alone.
// A Aᵀ, made once, takes one product per step in place of the two by A and Aᵀ. Of a convolution by
// W it is a convolution by the correlation of W with itself, K, of 2k − 1 places a side, less what
// would have gone through the padding around the image: for k = 3 and one place of padding that
// ring is felt only at the border and there acts along it, so that the correlations of the outer
// rows and columns of W correct the four sides, and those of its corners the four corners. Wide
// convolutions go by tiles (tile_convolution.h), with a fifth of the multiplications.
//
// Assumes: Gemm with the weight second, or a 2-d Conv of kernel 1 × 1 without padding or 3 × 3 with
// one place of it, stride, dilation and group 1; no other node reads the feature. Chosen where A Aᵀ
// costs less than A and Aᵀ: outputs · (2k − 1)² < 2 · inputs · k².
// Cost: 2 · outputs² · (2k − 1)² a place and step, by tiles about a fifth of it; K once, about as
// much as a direct step of one image.
// Tested by tests/search/front_layer_test.cc.
#pragma once

#include <memory>

#include <torch/types.h>

#include "fcp/nn/runtime/network.h"

namespace fcp {

class FrontLayer {
 public:
  virtual ~FrontLayer() = default;
  virtual torch::Tensor forward(const torch::Tensor& u) const = 0;    // A u + b
  virtual torch::Tensor transpose(const torch::Tensor& g) const = 0;  // Aᵀ g
  virtual torch::Tensor gram(const torch::Tensor& g) const = 0;       // A Aᵀ g
};

struct SplitHead {
  std::shared_ptr<const FrontLayer> front;  // null: the head has no such layer
  std::shared_ptr<const Network> rest;      // from p to the head's outputs
};

SplitHead split_head(const Network& head);

}  // namespace fcp
