// The learned low and high quantile of the residual, moved in proportion to their distance.
//
//   region(v, r) = [μ + q_τ − r w, μ + q_{1−τ} + r w],   w = q_{1−τ} − q_τ
//   score(v, y)  = the least r whose interval holds y, about
//                  max(μ + q_τ − y, y − μ − q_{1−τ}) / w; negative inside, −1/2 in the middle
//
// The quantiles are an output of the graph behind the cut (head_outputs.h). τ is the option `tail`,
// 0.05 by default: half the level that one expects to ask for is best, but any radius fits any
// level. Where w = 0 the interval is one point up to r = +∞. Several outputs: the largest score.
// Cost: one forward. Reference: CQR (Romano, Patterson, Candès, 2019) in the scaled form of Sesia
// and Candès, 2020; here of the residual, on frozen features.
// Tested by tests/scores/law_test.cc, coverage_test.cc and density_test.cc.
#pragma once

#include <memory>

#include "fcp/scores/score.h"

namespace fcp {

std::unique_ptr<Score> make_quantiles(const ScoreOptions& options,
                                      std::shared_ptr<const Network> head);

}  // namespace fcp
