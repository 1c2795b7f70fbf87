// Classifiers of texts by a decoder answer for every token and then take the answer of one, the
// last that is not padding. Every cut before the last layer is then passed by the index of that
// token. Taking the token before the layer gives the same answer,
//
//   (h W + b)[token]  =  (h[token]) W + b
//
// for less work, and a tensor that separates the graph: h[token], with one linear layer behind it.
//
// Assumes a Gather of a Flatten, or a GatherND, of a MatMul with a constant matrix and perhaps a
// constant Add, and that the file tells all dimensions but the rows. Cost: one run of the layer's
// input, where there is such a pattern. Tested by tests/nn/graph/select_first_test.cc.
#pragma once

#include "fcp/nn/graph/graph.h"

namespace fcp {

// The graph with each such selection before its layer.
Graph select_first(Graph graph);

}  // namespace fcp
