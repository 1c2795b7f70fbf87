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
// Tested by tests/scores/feature_margin_test.cc and label_law_test.cc.
#pragma once

#include <memory>

#include "fcp/scores/labels.h"
#include "fcp/scores/margin_head.h"
#include "fcp/scores/score.h"

namespace fcp {

std::unique_ptr<LabelScore> make_margin_by_bounds(const ScoreOptions& options,
                                                  const LogitHead& head, const AffineTail& tail);

}  // namespace fcp
