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
// convolutions go by tiles, with a fifth of the multiplications.
//
// Assumes: Gemm with the weight second, or a 2-d Conv of kernel 1 × 1 without padding or 3 × 3 with
// one place of it, stride, dilation and group 1; no other node reads the feature. Chosen where A Aᵀ
// costs less than A and Aᵀ: outputs · (2k − 1)² < 2 · inputs · k².
// Cost: 2 · outputs² · (2k − 1)² a place and step, by tiles about a fifth of it; K once, about as
// much as a direct step of one image.
// Tested by tests/search/front_layer_test.cc.
#pragma once

#include <cstdint>
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

// A convolution of stride 1 that keeps the size of the image, with a fifth of the multiplications,
// and its transpose.
//
// Idea: the image is cut into tiles of 8 × 8 results, each of which needs P × P inputs,
// P = 8 + k − 1. On a tile the convolution is a product at every frequency of a P × P Fourier
// transform. Of the P² frequencies of real numbers only one of each pair of conjugates is needed,
// and a product of two complex numbers takes three of real ones,
//
//   (a + ib)(c + id):   p₁ = (a + b) c,  p₂ = a (d − c),  p₃ = b (c + d),
//                       real part p₁ − p₃,  imaginary part p₁ + p₂,
//
// so that Q = 4 + 3 (P² − 4) / 2 real products, 148 for k = 3 and 214 for k = 5, take the place of
// 64 k² ones, 576 and 1600. All three stages are matrix products of float32 numbers:
//
//   U = A X    [Q, P²] · [P², C · tiles]       to frequencies; X are the inputs of all tiles
//   Y_q = V_q U_q    [M, C] · [C, tiles]       for each q; V are the weights, transformed once
//   y = S Y    [64, Q] · [Q, M · tiles]        and back, the middle of each tile alone
//
// Fourier's matrices are orthogonal: rounding grows no faster than in the direct sum, which has
// C k² terms in place of C. The transpose takes the complex conjugates of the weights: the same V,
// transposed, with p₂ and p₃ in each other's place.
//
// Computes in the precision of the weights, whatever that of the images. Assumes k odd.
// Cost: 2 Q (C M + C P² + 64 M) operations per tile; Q C M numbers for V.
// Reference: Vincent et al., On improving the numerical stability of Winograd convolutions, 2017,
// for the structure; the points are Fourier's in place of small integers.
// Tested by tests/search/front_layer_test.cc.

class TileConvolution {
 public:
  // Whether it needs clearly fewer operations than the direct sum, and V a small part of the memory
  // that networks may take: weights [M, C, k, k], images [N, C, h, w].
  static bool pays(const torch::Tensor& weight, const torch::Tensor& images);

  TileConvolution() = default;
  explicit TileConvolution(const torch::Tensor& weight);  // [M, C, k, k]

  torch::Tensor forward(const torch::Tensor& x) const;    // [N, C, h, w] → [N, M, h, w]
  torch::Tensor transpose(const torch::Tensor& g) const;  // [N, M, h, w] → [N, C, h, w]

 private:
  struct Stages {
    torch::Tensor analysis;   // A [Q, P²]
    torch::Tensor synthesis;  // S [64, Q]
  };

  torch::Tensor run(const torch::Tensor& x, const Stages& stages,
                    const torch::Tensor& weights) const;
  torch::Tensor run_some(const torch::Tensor& x, const Stages& stages,
                         const torch::Tensor& weights) const;

  int64_t side_ = 0;       // P
  torch::Tensor weights_;  // V [Q, M, C]
  Stages forward_, transpose_;
};

}  // namespace fcp
