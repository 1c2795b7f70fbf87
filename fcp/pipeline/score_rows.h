// The scores of rows, without calibrating on them: how strange a score finds each, in their order.
//
// Tested by tests/pipeline/calibrate_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fcp/data/rows.h"
#include "fcp/network/graph.h"
#include "fcp/pipeline/context.h"
#include "fcp/scores/score.h"

namespace fcp {

struct RowScores {
  int64_t sides = 1;
  std::vector<double> scores{};    // [N × sides], row by row
  std::vector<double> baseline{};  // [N], of baseline_of(score); empty for a plain score
};

// Ranks share the rows; the result is complete on rank 0. A score that is NaN is an Error that
// names the row. `cut` as in cut.h; empty: the score works on the network's input.
RowScores score_rows(const Graph& network, RowSource& source, const ScoreOptions& score,
                     const std::string& cut, const Context& context);

}  // namespace fcp
