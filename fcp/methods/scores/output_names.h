// Which of a network's outputs is the prediction and which are quantiles, where the options do not
// say: names, types and the operators that make an output decide; nothing is guessed by shape or
// order. A name tells a role by one of its words: `pred_std` is a spread, `q05` and `lower` are low
// quantiles, `hidden_states` is a feature.
//
// Outputs of whole numbers (labels), spreads, features and quantiles are not predictions; the
// prediction is the one output that remains. Logits beside their own probabilities are one output.
//
// Tested by tests/methods/scores/output_names_test.cc.
#pragma once

#include <string>

#include "fcp/methods/scores/score_table.h"
#include "fcp/nn/graph/graph.h"

namespace fcp {

// Fills in output, low and high where they are left open and the network has several outputs of its
// own; the score may be `auto`. Returns what was taken, as a sentence; empty: there was nothing to
// decide. An Error lists the outputs where neither a prediction nor quantiles can be told and the
// score needs to know.
std::string name_outputs(const Graph& network, ScoreOptions& score);

// Columns of an output as outputs of their own: networks that answer several quantiles at once have
// one output [N, Q], and "y:0" stands for its first column.
//
// Tested by tests/methods/scores/column_outputs_test.cc.
// The network with an output [N, 1] for each name "output:column" among the options' output,
// normalize, low, high and spread that is not an output already. An Error names a column that is
// not there.
Graph with_column_outputs(const Graph& network, const ScoreOptions& options);

}  // namespace fcp
