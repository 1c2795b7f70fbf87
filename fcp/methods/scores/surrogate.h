// The paper's Feature CP, faithfully: Algorithms 2 and 3.
//
//   score(v, y)  = ‖u_M − v‖        u_M: the surrogate feature after M steps (fcp/search)
//   region(v, r) = the bound-propagation range of the head over the ball of radius r
//
// The two are different sets: y ∈ region(v, r) neither implies score(v, y) ≤ r nor follows from it.
// What calibration guarantees is detection, score ≤ radius; the interval covers as much as M, η and
// the bound's looseness happen to make it. Evaluations of this score print both coverages.
//
// Cost: M forwards and backwards per row for the score, one range for the region.
// Reference: the paper, Algorithms 2 and 3. Tested by tests/methods/scores/surrogate_test.cc and
// tests/parity/golden_test.cc.
#pragma once

#include <memory>

#include "fcp/bounds/bounds.h"
#include "fcp/methods/scores/score.h"
#include "fcp/search/surrogate_search.h"

namespace fcp {

struct SurrogateOptions {
  static constexpr char kName[] = "surrogate";

  Norm norm = Norm::kInf;  // of feature space
  BoundOptions bound = {.outward = false};
  int steps = 0;                       // M; 0: to be chosen
  double step_rate = 0.01;             // η
  bool adam = false;                   // instead of plain descent
  bool paper = false;                  // the habits of its code
  std::vector<double> loss_weights{};  // of the squared error, one for each output; empty: all 1

  static std::vector<Option> rows();
  static constexpr bool searches() { return true; }
  bool operator==(const SurrogateOptions&) const = default;
};

std::unique_ptr<Score> make_score(const SurrogateOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head);

// The norm of feature space as the search of a surrogate feature names it.
inline DistanceOrder distance_order(Norm norm) {
  switch (norm) {
    case Norm::kInf:
      return DistanceOrder::kLargest;
    case Norm::kTwo:
      return DistanceOrder::kEuclidean;
    default:
      return DistanceOrder::kSum;
  }
}

}  // namespace fcp
