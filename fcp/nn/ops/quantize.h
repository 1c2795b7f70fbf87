// What operators on quantised numbers share: saturating, and parameters aligned to an axis.
#pragma once

#include <torch/types.h>

#include "fcp/nn/graph/graph.h"

namespace fcp {

// x, whole numbers already, clamped to the type's range; an Error where it has none.
torch::Tensor saturate(const torch::Tensor& x, torch::ScalarType type, const Node& node);

// A scale or zero point so that it broadcasts to x: one number, one per place along the axis, or
// with `block` > 0 one per block of that many places.
torch::Tensor align_to_axis(const torch::Tensor& parameter, const torch::Tensor& x, int64_t axis,
                            int64_t block, const Node& node, const char* what);

}  // namespace fcp
