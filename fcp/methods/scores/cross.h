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
// Tested by tests/methods/scores/cross_test.cc and tests/training/cross_fit_test.cc.
#pragma once

#include <memory>
#include <string>

#include "fcp/methods/scores/score.h"

namespace fcp {

struct CrossOptions {
  static constexpr char kName[] = "cross";

  static std::vector<std::string> learned_outputs();
  bool operator==(const CrossOptions&) const = default;
};

std::unique_ptr<Score> make_score(const CrossOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head);

// CV+ of labels as a score: the sets of a classifier whose own training rows calibrate it.
//
// n rows are dealt into folds; p_i is the softmax of the network that was trained without the fold
// of row i, and R_i = −log p_i(y_i | x_i). The graph gives, for a new x and C classes,
//
//   fcp.cross_margins  [N, n · C]   −log p_i(c | x) − R_i, for each row i the C classes
//
//   score(v, c)  = 1 + #{i : −log p_i(c | x) > R_i}, a whole number from 1 to n + 1; 0 for the
//                  network's answer (labels.h), unless sets may be empty
//   region(v, k) = { c : score(v, c) ≤ k }
//
// so that the law holds by construction. With the scores 1, …, n as those of the calibration rows,
// the radius at level α is k = ⌈(1 − α)(n + 1)⌉, and the region is, with the answer, the CV+ set of
// Romano, Sesia and Candès (Classification with valid and adaptive coverage, 2020, section 2.3)
// with the score of lac (−log p orders labels as 1 − p does). Their Theorem 3 gives the guarantee
// of fcp/conformal/cross_guarantee.h. Assumes what cross.h assumes. Cost: one forward and n · C
// comparisons per row. Tested by tests/methods/scores/cross_test.cc and
// tests/training/cross_fit_test.cc.
struct CrossLabelsOptions {
  static constexpr char kName[] = "cross_labels";

  bool allow_empty = false;

  static std::vector<std::string> learned_outputs();
  bool operator==(const CrossLabelsOptions&) const = default;
};

std::unique_ptr<Score> make_score(const CrossLabelsOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head);

// Puts the calibration rows of such a graph, or of one of labels, in the order of their folds and,
// in a fold, of their residuals, so that their order does not tell which row has which. Nothing
// depends on it: regions count rows. `fcp fit` writes them so; files of earlier versions had the
// order of the training rows.
void sort_cross_rows(Graph& graph);

}  // namespace fcp
