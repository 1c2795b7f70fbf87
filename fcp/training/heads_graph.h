// Heads on the features of a cross-fitted ensemble, learned from what each member says of the rows
// that it has not seen (heads.h): the graph then tells the spread and the quantiles of its residual
// beside the prediction.
// Tested by tests/training/heads_graph_test.cc.
#pragma once

#include "fcp/data/array.h"
#include "fcp/training/tabular.h"

namespace fcp {

// Adds the heads to the graph of `trained`, a regression on rows with the answers y [N, K]. False,
// and nothing is added, where a member has too few unseen rows to learn from.
// Groups, weights and seed are those of the options.
bool add_heads(const Array& y, const TabularOptions& options, TabularResult& trained);

}  // namespace fcp
