// Conformalized quantile regression in feature space, in two forms.
//
// Nested (the default). The band of the two quantile heads over the ball of radius r, where a
// negative radius shrinks it (nested.h):
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
// band. Reference: the paper, its appendix on Feature CQR. Tested by
// tests/methods/scores/law_test.cc and feature_cqr_test.cc.
#pragma once

#include <memory>

#include "fcp/methods/scores/score.h"

namespace fcp {

struct FeatureCqrOptions {
  static constexpr char kName[] = "feature_cqr";

  std::string low{};        // as in cqr.h
  std::string high{};       //
  bool asymmetric = false;  //
  Norm norm = Norm::kInf;   // of feature space
  BoundOptions bound = {.outward = false};
  std::vector<double> scale{};  // nested: as in nested.h
  double floor = 0;             //
  double slope = 0;             //
  int steps = 0;                // the paper's: M; 0: to be chosen
  double step_rate = 0.01;      // η
  bool adam = false;            // instead of plain descent
  bool paper = false;           // the form

  bool searches() const { return paper; }
  // What an option of one of the two forms says behind the score's name.
  static std::string form_of(const std::string& option);
  bool operator==(const FeatureCqrOptions&) const = default;
};

std::unique_ptr<Score> make_score(const FeatureCqrOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head);

}  // namespace fcp
