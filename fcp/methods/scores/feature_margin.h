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
// It is ≥ 0, and 0 for the label the network answers; so is the score, unless sets may be empty.
// Equal W_j and W_k count as 2^-126 apart: what
// only the bias decides, no feature changes. Deeper heads go through bounds of the differences
// z_j − z_k (below). Whatever the bound's looseness, the law is exact and nothing is
// sampled. The rank term (weight w, f ranks free of it) is the one of RAPS; the rank depends on v
// and k alone, so that the law still holds.
//
// Assumes W_j of float32 size. Cost: C² D / 2 once for the distances; C a row for the score. For
// the region each label is first held against the network's answer alone, which rules out nearly
// all of them at once: C a row, and C for each label that is left.
// Tested by tests/methods/scores/feature_margin_test.cc and label_law_test.cc.
#pragma once

#include <memory>

#include <torch/types.h>

#include "fcp/methods/scores/labels.h"
#include "fcp/methods/scores/margin_head.h"
#include "fcp/methods/scores/score.h"

namespace fcp {

struct FeatureMarginOptions {
  static constexpr char kName[] = "feature_margin";

  Norm norm = Norm::kInf;  // of feature space
  BoundOptions bound = {.outward = false};
  double rank_weight = 0;  // w
  int64_t rank_free = 0;   // f
  bool allow_empty = false;
  bool operator==(const FeatureMarginOptions&) const = default;
};

std::unique_ptr<Score> make_score(const FeatureMarginOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head);

// The inverse of the dual distance of every two rows of W [C, D]: [C, C] float32, 0 on the
// diagonal.
torch::Tensor inverse_distances(const torch::Tensor& weight, Norm norm);

// feature_margin over heads of more than one layer: bounds of the differences of logits.
//
//   m(v, k) = the smallest r such that for no j the lower bound of z_j − z_k over the ball of
//             radius r is above 0; 0 for the label the network answers
//
// The affine end of the head (margin_head.h) is replaced by one Gemm that makes all C² differences,
// with the weights W_j − W_k: bounds of a difference are tighter than differences of bounds. The
// radius is found by bisection over float32 (radius_search.h), and the law is exact for bounds that
// grow with the ball and for those that do not.
//
// Assumes that every op of the head has bounds. Cost: 31 bounds of C² outputs per row for the score
// of one label; for the region one (31 where bounds are not nested), C times that with a rank term
// or a radius for each label. A head whose C² differences do not fit into memory is refused.
// Reference: Gowal et al., On the Effectiveness of Interval Bound Propagation, 2018, for the Gemm.
// Tested by tests/methods/scores/feature_margin_test.cc and label_law_test.cc.
std::unique_ptr<LabelScore> make_margin_by_bounds(const FeatureMarginOptions& options,
                                                  const LogitHead& head, const AffineTail& tail);

}  // namespace fcp
