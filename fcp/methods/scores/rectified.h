// Any score, made comparable between rows by a network that was fitted to predict its quantile: the
// radius adapts to the row, so that coverage is nearly the same everywhere.
//
//   score'(v, y)  = score(v, y) / ρ(v)      region'(v, r) = region(v, r ρ(v))
//   score'(v, y)  = score(v, y) − ρ(v)      region'(v, r) = region(v, r + ρ(v))
//
// ρ is an output of the graph behind the cut (the option `rectifier`), about the 1 − α quantile of
// score(v, Y) given v. Scores that are never negative are divided; cqr, feature_cqr and quantiles,
// which may be (ScoreTraits::negative), and those of one end (one_sided.h) are lowered. ρ must not
// have seen the calibration rows; then score' is a score like any other, obeys the law and has
// exact marginal coverage whatever ρ learned. A ρ that divides is brought into [1e-150, 1e150]. A
// score with two sides takes one ρ for both, or one for each.
//
// To the last bit: score' is the least r with r ρ (r + ρ) at or above the score.
// Cost: that of the score and one more forward. Reference: RCP (Plassier, Fishkov, Guizani, Panov,
// Moulines, Rectifying Conformity Scores for Better Conditional Coverage, arXiv 2502.16336).
// Tested by tests/methods/scores/law_test.cc and coverage_test.cc.
#pragma once

#include <memory>

#include "fcp/methods/scores/score_table.h"

namespace fcp {

// The score of `options`, rectified by options.rectifier. An Error where the score does not obey
// the law or the head has no such output.
std::unique_ptr<Score> make_rectified(const ScoreOptions& options,
                                      std::shared_ptr<const Network> head);

}  // namespace fcp
