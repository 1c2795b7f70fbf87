// The ends of a normalisation, a softmax and a sine over a box [l, u], written as ONNX nodes: the
// formulas of the operators' own intervals (fcp/nn/ops/normalization.h, softmax.cc,
// trigonometry.cc); the first two in double precision.
//
//   LayerNormalization  c_i = x_i − mean(x) lies in [c⁻, c⁺]; c / √((c² + Σ_{j≠i} c_j²) / n + ε)
//                       rises with c, and its size falls with the sum over the others, which lies
//                       between Σ least c_j² and Σ largest c_j²
//   Softmax             e^{l_i} / (e^{l_i} + Σ_{j≠i} e^{u_j}), and l and u exchanged
//
//   Sin, Cos            ±1 where the next place of that value after l is not behind u, otherwise
//                       the larger or smaller of both ends' values
//
// Cost: some thirty nodes each. Tested by tests/export/export_test.cc.
#pragma once

#include <torch/types.h>

#include "fcp/export/ranges.h"

namespace fcp {

// Along the last axis, of n = scale.numel() numbers; bias: undefined for none.
Ends layer_norm_ends(GraphBuilder& builder, const Ends& x, const torch::Tensor& scale,
                     const torch::Tensor& bias, double epsilon);

Ends softmax_ends(GraphBuilder& builder, const Ends& x, int64_t axis);

// Of a sine, or of a cosine.
Ends sine_ends(GraphBuilder& builder, const Node& node, const Ends& x, bool cosine);

}  // namespace fcp
