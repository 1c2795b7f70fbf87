// linearized without autograd, for heads Linear–ReLU–Linear (fcp/network/relu_head.h) on the CPU:
//
//   p = W₁v + b₁,   μ_k = w_k · max(0, p) + b₂,   ∇g_k(v) = W₁ᵀ (w_k where p > 0, else 0)
//
// Rows go in blocks through p, μ and the gradients, which stay in the first caches; each is a small
// matrix product (fcp/network/affine_rows.h) whose rows are computed alike, whatever rows stand
// around them, so that the law holds as in the general form. Gradients are float32, their norms
// double. Cost: 2 D H (1 + K) operations per row.
// Tested by tests/scores/linearized_test.cc and law_test.cc.
#pragma once

#include <memory>

#include "fcp/scores/score.h"

namespace fcp {

// The fast form where the head has that shape; `general` where it has not, and for rows that are
// not what such a head takes.
std::unique_ptr<Score> with_relu_linearized(const ScoreOptions& options, const Network& head,
                                            size_t output, std::unique_ptr<Score> general);

}  // namespace fcp
