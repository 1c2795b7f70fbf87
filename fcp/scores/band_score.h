// The score that `nested` and the nested form of `feature_cqr` share: y is measured by the radius
// of the ball of features at whose bound-propagation band it enters.
//
// Two outputs of the head, `low` and `high` (one and the same for nested), have the ranges
// [l, u] over the ball of radius |r| around v. The band is
//
//   r ≥ 0:   [min(l_low, l_high) − m, max(u_low, u_high) + m]      wider with r
//   r < 0:   [min(u_low, u_high) − m, max(l_low, l_high) + m]      narrower with |r|, then empty
//
// with m = c r s / 2, the floor. At r = 0 it is the prediction: the two quantiles in their order.
// nested.h and feature_cqr.h say what each is for; radius_search.h how the radius is found, and
// what a band is where the bound does not grow with the ball: each end is then put together along
// the bisection's path. Bands that may be empty have no point in common, so that there each side
// must search alone; bands from zero on all hold the prediction, and each output may.
#pragma once

#include <memory>

#include "fcp/scores/radius_search.h"
#include "fcp/scores/score.h"

namespace fcp {

struct BandOutputs {
  size_t low = 0;  // indices of the head's outputs
  size_t high = 0;
  RadiusRange range = RadiusRange::kFromZero;
  int64_t sides = 1;
};

// Uses norm, bound, floor, slope and pixels of the options.
std::unique_ptr<Score> make_band_score(const ScoreOptions& options,
                                       std::shared_ptr<const Network> head,
                                       const BandOutputs& outputs);

}  // namespace fcp
