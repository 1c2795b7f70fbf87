// Feature conformal prediction whose printed interval is the one that is covered.
//
//   band(v, r)   = [lower(v, r) − c r s / 2, upper(v, r) + c r s / 2]
//   score(v, y)  = the smallest r with y ∈ band(v, r)        +∞ where no finite radius reaches y
//   region(v, r) = band(v, r)
//
// lower and upper are the bound-propagation range of the head over the ball of radius r around v
// (fcp/bounds). Whatever the bound's looseness, the score measures y with the very ruler that makes
// the interval, so the law is exact and needs neither a number of steps nor a step size. The floor
// c widens every band by the share c of the mean band (s: mean width of a band of radius 1,
// measured on other rows than those of calibration), which helps where single bands collapse.
//
// The radius is found by bisection over float32 radii (radius_search.h), at any scale and without a
// bracket. CROWN's range may shrink when the radius grows; score and region then follow the same
// bisection, and the law is exact for every bound.
//
// Where a share of an image's pixels is asked for (pixels.h), the score is the smallest radius
// whose band holds that many, found by the same bisection at the same cost.
//
// Cost: 31 bands per row for the score (31 K where bands are not nested), 1 (31) for the region.
// Tested by tests/scores/law_test.cc and nested_test.cc.
#pragma once

#include <memory>

#include "fcp/scores/score.h"

namespace fcp {

std::unique_ptr<Score> make_nested(const ScoreOptions& options,
                                   std::shared_ptr<const Network> head);

}  // namespace fcp
