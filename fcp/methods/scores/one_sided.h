// Prediction bounds: an interval with one end, or with a radius of its own for each end.
//
//   side upper:   score(v, y) = the least r with y ≤ U(v, r)      region (−∞, U(v, r)]
//   side lower:   score(v, y) = the least r with y ≥ L(v, r)      region [L(v, r), ∞)
//   asymmetric:   both numbers, each with a radius of its own at α/2
//
// One end takes the whole of α. The ends of most scores are those of a pair,
//
//   L = low − r w,   U = high + r w            residual: low = high = μ, w = 1; spread: w = σ;
//                                              linearized: w = L_k; quantiles: its two, w their
//                                              distance
//
// with r of either sign, so that a bound may lie on either side of the prediction and is as long as
// it has to be at any level. cqr, nested and feature_cqr have signed ends of their own; the
// interval of density grows from its densest place, on whose side a bound stays. A score is the
// least radius in the arithmetic of its end: the law is exact to the last bit.
// Tested by tests/methods/scores/one_sided_test.cc.
#pragma once

#include <functional>
#include <memory>

#include "fcp/methods/scores/score.h"

namespace fcp {

// Of a row and output; NaN where the network answered it. A width counts as at least 0.
struct EndPairs {
  torch::Tensor prediction, low, high, width;  // [N, K] doubles on the CPU, one after the other
};
using ReadEndPairs = std::function<EndPairs(const torch::Tensor& features)>;

// One bound; of kBoth both, each with a radius of its own.
std::unique_ptr<Score> make_end_score(ReadEndPairs read, BoundSide side);

// One of the ends of a score with a radius for each; the score itself for kBoth.
std::unique_ptr<Score> one_end_of(std::unique_ptr<Score> two_sided, BoundSide side);

}  // namespace fcp
