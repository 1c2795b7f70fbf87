// Constants of types that libtorch lacks (ops/types.h): each becomes a constant of the wider type
// that holds it and a Cast to its own type, so that every tensor still has the type the file gave
// it and a file written again is as valid as the one that was read.
#pragma once

#include <cstdint>
#include <string>

#include "fcp/nn/graph/onnx_tensor.h"

namespace fcp {

// Also tells QuantizeLinear and CastLike by an attribute the narrow type that they took from an
// input. An Error names a node that computes with narrow numbers. Graphs inside nodes are treated
// alike. Tested by tests/nn/graph/onnx_test.cc.
void cast_narrow_tensors(onnx::GraphProto& graph, int64_t opset, const std::string& file);

}  // namespace fcp
