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
// Reference: the paper, Algorithms 2 and 3. Tested by tests/scores/surrogate_test.cc and
// tests/parity/golden_test.cc.
#pragma once

#include <memory>

#include "fcp/scores/score.h"

namespace fcp {

std::unique_ptr<Score> make_surrogate(const ScoreOptions& options,
                                      std::shared_ptr<const Network> head);

}  // namespace fcp
