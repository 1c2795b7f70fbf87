// Which of a network's outputs is the prediction and which are quantiles, where the options do not
// say: names, types and the operators that make an output decide; nothing is guessed by shape or
// order. A name tells a role by one of its words: `pred_std` is a spread, `q05` and `lower` are low
// quantiles, `hidden_states` is a feature.
//
// Outputs of whole numbers (labels), spreads, features and quantiles are not predictions; the
// prediction is the one output that remains. Logits beside their own probabilities are one output.
//
// Tested by tests/scores/output_names_test.cc.
#pragma once

#include <string>

#include "fcp/network/graph.h"
#include "fcp/scores/score.h"

namespace fcp {

// Fills in output, low and high where they are left open and the network has several outputs of its
// own; `any_score` says that the score is still to be chosen. Returns what was taken, as a
// sentence; empty: there was nothing to decide. An Error lists the outputs where neither a
// prediction nor quantiles can be told and the score needs to know.
std::string name_outputs(const Graph& network, ScoreOptions& score, bool any_score);

}  // namespace fcp
