// Columns of an output as outputs of their own: networks that answer several quantiles at once have
// one output [N, Q], and "y:0" stands for its first column.
//
// Tested by tests/scores/column_outputs_test.cc.
#pragma once

#include "fcp/network/graph.h"
#include "fcp/scores/score.h"

namespace fcp {

// The network with an output [N, 1] for each name "output:column" among the options' output,
// normalize, low, high and spread that is not an output already. An Error names a column that is
// not there.
Graph with_column_outputs(const Graph& network, const ScoreOptions& options);

}  // namespace fcp
