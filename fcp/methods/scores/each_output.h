// A radius for each output: K scores of one output each, side by side, instead of the largest.
//
//   score(v, y)_k  = score of output k alone       region(v, r) = Π_k region of output k at r_k
//
// Each output is calibrated at a level of its own (Score::targets), so that P(y_k ∈ its interval)
// ≥ 1 − α for every k; all at once are in less often, at least 1 − K α. `SharedOptions::targets` is
// K. The score of one output is the score itself, over a head whose outputs are the columns of that
// output alone: its law, ends and options are those of the score. Of scores that read outputs of
// the head, not of those that bound or search it.
// Cost: one forward, and the score's own work. Tested by tests/methods/scores/each_output_test.cc
// and law_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "fcp/methods/scores/score.h"

namespace fcp {

using MakeScore = std::function<std::unique_ptr<Score>(std::shared_ptr<const Network> head)>;

// `make` makes the score of one output. An Error where no output of the head has `targets` columns.
std::unique_ptr<Score> make_each_output(int64_t targets, std::shared_ptr<const Network> head,
                                        const MakeScore& make);

}  // namespace fcp
