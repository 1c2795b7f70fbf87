// Fast Feature CP: the head replaced by its tangent at the feature.
//
//   L_k          = ‖∇g_k(v)‖ in the dual norm (ℓ1 of the gradient for an ℓ∞ ball) + c s / 2
//   score(v, y)  = max_k |y_k − μ_k| / L_k           0 where y_k = μ_k, +∞ where only L_k = 0
//   region(v, r) = [μ_k − r L_k, μ_k + r L_k]
//
// L_k is how fast output k can move with the feature. Where it is 0 the region is the prediction
// alone, and no finite radius reaches another y; the floor c, relative to s, the mean of 2 L over
// rows that are not calibrated on, avoids that. The score is the least radius whose region holds y
// in the region's own arithmetic (outputs.h): the law is exact.
//
// Assumes a differentiable head. Cost: one forward and K backwards; heads Linear–ReLU–Linear have a
// fast form (below).
// Reference: Fast Feature CP, arXiv 2412.00653. Tested by tests/methods/scores/law_test.cc and
// linearized_test.cc.
#pragma once

#include <memory>

#include "fcp/methods/scores/score.h"

namespace fcp {

struct LinearizedOptions {
  static constexpr char kName[] = "linearized";

  Norm norm = Norm::kInf;  // of feature space
  double floor = 0;        // c
  double slope = 0;        // s; set where floor > 0
  bool operator==(const LinearizedOptions&) const = default;
};

std::unique_ptr<Score> make_score(const LinearizedOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head);

// linearized without autograd, for heads Linear–ReLU–Linear (fcp/nn/kernels/relu_mlp/relu_head.h)
// on the CPU:
//
//   p = W₁v + b₁,   μ_k = w_k · max(0, p) + b₂,   ∇g_k(v) = W₁ᵀ (w_k where p > 0, else 0)
//
// Rows go in blocks through p, μ and the gradients, which stay in the first caches; each is a small
// matrix product (fcp/nn/kernels/relu_mlp/affine_rows.h) whose rows are computed alike, whatever
// rows stand around them, so that the law holds as in the general form. Gradients are float32,
// their norms double. Cost: 2 D H (1 + K) operations per row.
// Tested by tests/methods/scores/linearized_test.cc and law_test.cc.
// The fast form where the head has that shape; `general` where it has not, and for rows that are
// not what such a head takes.
std::unique_ptr<Score> with_relu_linearized(const LinearizedOptions& options, const Network& head,
                                            size_t output, std::unique_ptr<Score> general);

}  // namespace fcp
