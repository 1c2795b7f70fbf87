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
// The search. Radii are float32 numbers, whose bit patterns are ordered like the numbers, so
// bisection over the 31 bits finds the radius exactly, at any scale and without a bracket:
// multiplying features by a power of two multiplies radii by it and changes no band.
//
// Bands that are not nested. CROWN's range may shrink when the radius grows. Then the score is by
// definition what the bisection finds, and region(v, r) is the set of all y for which it finds at
// most r: down the bisection's path to r, y must be in band(m) where the path turns below m, and is
// in at once if it is in band(m) where the path turns above:
//
//   R = ∅ at the leaf;   going up:   R ← band(m) ∩ R where r < m,   R ← band(m) ∪ R where r ≥ m
//
// All bands hold the prediction, so R is an interval, and the law is exact for every bound.
// Each output searches alone then, and the score is the largest.
//
// Cost: 31 bands a row for the score (31 K where bands are not nested), 1 (31) for the region.
// Tested by tests/scores/law_test.cc and nested_test.cc.
#pragma once

#include <memory>

#include "fcp/scores/score.h"

namespace fcp {

std::unique_ptr<Score> make_nested(const ScoreOptions& options,
                                   std::shared_ptr<const Network> head);

}  // namespace fcp
