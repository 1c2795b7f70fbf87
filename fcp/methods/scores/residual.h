// Vanilla conformal prediction: the distance between truth and prediction in the output space.
//
//   score(v, y)  = max_k |y_k − μ_k| / σ_k      μ = g(v), σ = 1 or a second output of the network
//   region(v, r) = [μ_k − r σ_k, μ_k + r σ_k]
//
// Where a share of an image's pixels is asked for, the maximum is their quantile (outputs.h).
// Assumes σ > 0. With σ = 1 all rows get the same length. Computed in double precision: distances
// are rounded up and ends inwards (outputs.h), and with a σ the score is the least radius
// whose region holds y, so that the law is exact to the last bit.
// Cost: one forward. Reference: Papadopoulos et al., 2002; the paper's Algorithm 1.
// Tested by tests/methods/scores/law_test.cc and residual_test.cc.
#pragma once

#include <memory>

#include "fcp/methods/scores/score.h"

namespace fcp {

struct ResidualOptions {
  static constexpr char kName[] = "residual";

  std::string normalize{};  // the output that says the spread of y; empty: none
  bool asymmetric = false;  // a radius for each side, each at α/2 (one_sided.h)

  static std::vector<Option> rows();
  bool operator==(const ResidualOptions&) const = default;
};

std::unique_ptr<Score> make_score(const ResidualOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head);

}  // namespace fcp
