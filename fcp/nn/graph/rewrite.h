// Groups of nodes that exporters write out, put back into the one operator they mean, so that its
// bounds and its kernel are found again.
#pragma once

#include "fcp/nn/graph/graph.h"

namespace fcp {

// Where(x > t, x, Softplus(x)), with both sides of the comparison perhaps scaled by β as in
// Softplus(βx) / β, becomes the Softplus alone where t is so large (≥ 15) that both are equal to
// half a unit of single precision: ln(1 + eᵗ) − t < e⁻ᵗ.
//
// Assumes that constants are folded. Cost: linear in the nodes.
// Tested by tests/nn/graph/rewrite_test.cc.
void rewrite(Graph& graph);

}  // namespace fcp
