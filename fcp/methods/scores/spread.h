// Intervals as long as a head on the features says that the network errs there.
//
//   score(v, y)  = max_k |y_k − μ_k| / σ_k(v)
//   region(v, r) = [μ_k − r σ_k, μ_k + r σ_k]
//
// σ is an output of the graph behind the cut (outputs.h); heads that fcp fits hold their
// floor, a tenth of the mean spread, already. Whatever the head learned, coverage is exact: a σ
// that is negative counts as 0, where y = μ has score 0 and every other y the score +∞. The score
// is the least radius whose interval holds y, in the interval's own arithmetic: the law is exact.
// Cost: one forward. Reference: locally weighted conformal prediction, Lei et al., 2018, section
// 5.2; the spread is learned in feature space from residuals that the network was not fitted to.
// Tested by tests/methods/scores/law_test.cc, coverage_test.cc and spread_test.cc.
#pragma once

#include <memory>

#include "fcp/methods/scores/score.h"

namespace fcp {

struct SpreadOptions {
  static constexpr char kName[] = "spread";

  std::string spread{};     // the output that is σ; empty: the reserved one
  bool asymmetric = false;  // a radius for each side, each at α/2 (one_sided.h)

  static std::vector<Option> rows();
  std::vector<std::string> learned_outputs() const;
  bool operator==(const SpreadOptions&) const = default;
};

std::unique_ptr<Score> make_score(const SpreadOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head);

}  // namespace fcp
