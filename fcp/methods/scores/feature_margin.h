// How far the feature is from where a label would win: labels that no hyperplane of the head rules
// out within a radius.
//
//   m(v, k)      = the smallest r such that no j has z_j > z_k on all of the ball of radius r
//   score(v, k)  = m(v, k) + w max(0, o_k − f)                    o_k: rank of k among the logits z
//   region(v, r) = all labels with score at most r
//
// For a head that is one linear layer, z = W u + b, in closed form:
//
//   m(v, k) = max_j (z_j − z_k) / ‖W_j − W_k‖      in the dual of the norm of feature space
//
// It is ≥ 0, and 0 for the label the network answers. Equal W_j and W_k count as 2^-126 apart: what
// only the bias decides, no feature changes. Deeper heads go through bounds of the differences
// z_j − z_k (margin_bounds.h). Whatever the bound's looseness, the law is exact and nothing is
// sampled. The rank term (weight w, f ranks free of it) is the one of RAPS; the rank depends on v
// and k alone, so that the law still holds.
//
// Assumes W_j of float32 size. Cost: C² D / 2 once for the distances; C a row for the score. For
// the region each label is first held against the network's answer alone, which rules out nearly
// all of them at once: C a row, and C for each label that is left.
// Tested by tests/scores/feature_margin_test.cc and label_law_test.cc.
#pragma once

#include <memory>

#include <torch/types.h>

#include "fcp/scores/score.h"

namespace fcp {

std::unique_ptr<Score> make_feature_margin(const ScoreOptions& options,
                                           std::shared_ptr<const Network> head);

// The inverse of the dual distance of every two rows of W [C, D]: [C, C] float32, 0 on the
// diagonal.
torch::Tensor inverse_distances(const torch::Tensor& weight, Norm norm);

}  // namespace fcp
