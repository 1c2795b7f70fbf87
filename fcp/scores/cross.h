// CV+ as a score: the intervals of a network whose own training rows calibrate it.
//
// n rows are dealt into folds; μ_i is the prediction of the network that was trained without the
// fold of row i, and R_i = |y_i − μ_i(x_i)| its residual. The graph gives, for a new x,
//
//   fcp.cross_low   [N, n]   a_i = μ_i(x) − R_i
//   fcp.cross_high  [N, n]   b_i = μ_i(x) + R_i
//
//   score(v, y)  = 1 + max( #{a_i > y}, #{b_i < y} ),  a whole number from 1 to n + 1
//   region(v, k) = [ the (n + 1 − k)-th smallest a_i, the k-th smallest b_i ]
//
// The law holds: y is at least that a exactly where at most k − 1 of the a_i lie above it, and at
// most that b exactly where at most k − 1 of the b_i lie below it. With the scores 1, …, n as those
// of the calibration rows, the radius at level α is k = ⌈(1 − α)(n + 1)⌉, and the region is the CV+
// interval of Barber, Candès, Ramdas and Tibshirani (2021), equations 11 and 12.
//
// Assumes exchangeable rows, folds of equal size and a training that treats its rows alike and has
// not seen the fold. The guarantee is about 1 − 2α (fcp/conformal/cross_guarantee.h); coverage is
// mostly near 1 − α.
// Cost: one forward and two selections among n numbers per row.
// Tested by tests/scores/cross_test.cc and tests/training/cross_fit_test.cc.
#pragma once

#include <memory>

#include "fcp/scores/score.h"

namespace fcp {

std::unique_ptr<Score> make_cross(const ScoreOptions& options, std::shared_ptr<const Network> head);

}  // namespace fcp
