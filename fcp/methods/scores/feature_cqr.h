// Conformalized quantile regression in feature space, in two forms.
//
// Nested (the default). The band of the two quantile heads over the ball of radius r, where a
// negative radius shrinks it (band_score.h):
//
//   r ≥ 0:  [lower of the low head, upper of the high head]       over the ball of radius r
//   r < 0:  [upper of the low head, lower of the high head]       over the ball of radius |r|
//
// score = the smallest r at which y enters; symmetric, or one radius per side at α/2 each.
// Quantiles that cross are taken in their order, as in cqr. The law is exact. Empty regions are
// legal.
//
// The paper's (options.paper): Algorithm 4. For each head by itself, d = ‖u_M − v‖ after M gradient
// steps from v towards y, with a sign: + where y lies outside the quantile (it must move outwards),
// − where it lies inside. Equation 5 then reads: the sign of the radius says which end of the
// head's band over |r| is taken, since at test time the truth's own sign is not known. As in
// Algorithm 4, each side is calibrated at 1 − α. The law does not hold: the search that scores y is
// not the band that is printed. docs/mathematics.md derives the sign.
//
// Cost: 32 bands per row and side for the score, one for the region; the paper's: M steps and a
// band. Reference: the paper, its appendix on Feature CQR. Tested by tests/scores/law_test.cc and
// feature_cqr_test.cc.
#pragma once

#include <memory>

#include "fcp/scores/score.h"

namespace fcp {

std::unique_ptr<Score> make_feature_cqr(const ScoreOptions& options,
                                        std::shared_ptr<const Network> head);

}  // namespace fcp
