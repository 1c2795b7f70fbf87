// Fast Feature CP: the head replaced by its tangent at the feature.
//
//   L_k          = ‖∇g_k(v)‖ in the dual norm (ℓ1 of the gradient for an ℓ∞ ball) + c s / 2
//   score(v, y)  = max_k |y_k − μ_k| / L_k           0 where y_k = μ_k, +∞ where only L_k = 0
//   region(v, r) = [μ_k − r L_k, μ_k + r L_k]
//
// L_k is how fast output k can move with the feature. Where it is 0 the region is the prediction
// alone, and no finite radius reaches another y; the floor c, relative to s, the mean of 2 L over
// rows that are not calibrated on, avoids that. The score is the least radius whose region holds y
// in the region's own arithmetic (interval_ends.h): the law is exact.
//
// Assumes a differentiable head. Cost: one forward and K backwards; heads Linear–ReLU–Linear have a
// fast form (relu_linearized.h).
// Reference: Fast Feature CP, arXiv 2412.00653. Tested by tests/scores/law_test.cc and
// linearized_test.cc.
#pragma once

#include <memory>

#include "fcp/scores/score.h"

namespace fcp {

std::unique_ptr<Score> make_linearized(const ScoreOptions& options,
                                       std::shared_ptr<const Network> head);

}  // namespace fcp
