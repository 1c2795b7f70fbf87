// CV+ of labels as a score: the sets of a classifier whose own training rows calibrate it.
//
// n rows are dealt into folds; p_i is the softmax of the network that was trained without the fold
// of row i, and R_i = −log p_i(y_i | x_i). The graph gives, for a new x and C classes,
//
//   fcp.cross_margins  [N, n · C]   −log p_i(c | x) − R_i, for each row i the C classes
//
//   score(v, c)  = 1 + #{i : −log p_i(c | x) > R_i}, a whole number from 1 to n + 1
//   region(v, k) = { c : score(v, c) ≤ k }
//
// so that the law holds by construction. With the scores 1, …, n as those of the calibration rows,
// the radius at level α is k = ⌈(1 − α)(n + 1)⌉, and the region is the CV+ set of Romano, Sesia and
// Candès (Classification with valid and adaptive coverage, 2020, section 2.3) with the score of lac
// (−log p orders labels as 1 − p does). Their Theorem 3 gives the guarantee of
// fcp/conformal/cross_guarantee.h. Assumes what cross.h assumes. Cost: one forward and n · C
// comparisons per row. Tested by tests/scores/cross_test.cc and tests/training/cross_fit_test.cc.
#pragma once

#include <memory>
#include <string>

#include "fcp/scores/score.h"

namespace fcp {

// Made with its network, as kCrossScore is.
inline constexpr char kCrossLabelScore[] = "cross_labels";

inline bool is_cross_score(const std::string& name) {
  return name == kCrossScore || name == kCrossLabelScore;
}

std::unique_ptr<Score> make_cross_labels(const ScoreOptions& options,
                                         std::shared_ptr<const Network> head);

}  // namespace fcp
