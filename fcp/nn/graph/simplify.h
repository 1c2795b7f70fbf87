// Rewrites of a graph that keep its meaning and make it cheaper to run.
#pragma once

#include "fcp/nn/graph/graph.h"

namespace fcp {

// Replaces every node that depends on no input by its result (weights stored as float16 and cast,
// shapes written out as Constant nodes). Results may take at most kMaxFoldedBytes beyond the bytes
// the file itself brought, so that a small file cannot grow without limit.
constexpr size_t kMaxFoldedBytes = size_t{256} << 20;
void fold_constants(Graph& graph);

// Removes the nodes that no output depends on, and initializers that nothing reads.
void drop_unneeded(Graph& graph);

// An Error for a BatchNormalization in training mode, which makes rows depend on each other.
void refuse_training(const Node& node);

// Multiplies each BatchNormalization into the Conv, ConvTranspose or Gemm before it where that is
// exact: with constant weights and nobody else reading what is in between.
//   y = s (W x + b − m) / √(v + ε) + t   =   (k W) x + (k (b − m) + t),   k = s / √(v + ε)
void fold_batch_norm(Graph& graph);

// Groups of nodes that exporters write out, put back into the one operator they mean, so that its
// bounds and its kernel are found again.

// Where(x > t, x, Softplus(x)), with both sides of the comparison perhaps scaled by β as in
// Softplus(βx) / β, becomes the Softplus alone where t is so large (≥ 15) that both are equal to
// half a unit of single precision: ln(1 + eᵗ) − t < e⁻ᵗ.
//
// Assumes that constants are folded. Cost: linear in the nodes.
// Tested by tests/nn/graph/simplify_test.cc.
void rewrite(Graph& graph);

}  // namespace fcp
