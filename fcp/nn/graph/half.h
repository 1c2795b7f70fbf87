// Networks stored in 16-bit floats, computed in 32: the graph of a file stays as it is, Network and
// inspect() widen theirs. And networks in double precision, to see what rounding does.
#pragma once

#include "fcp/nn/graph/graph.h"

namespace fcp {

// Turns every float16 and bfloat16 of the graph into float32: initializers, constants in nodes,
// declared inputs and outputs, and casts to 16 bits, which round no more. Numbers are converted
// exactly; what is computed is nearer to the real numbers than 16 bits would be.
void widen_half(Graph& graph);

// The same with every floating-point type turned into float64: what the network answers but for
// rounding.
Graph in_double(Graph graph);

}  // namespace fcp
