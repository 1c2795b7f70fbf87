// Writes a Graph as an ONNX file. What read_onnx keeps, write_onnx gives back: reading, writing
// and reading again yields the same graph, and the same graph always yields the same bytes.
#pragma once

#include <string>

#include "fcp/nn/graph/graph.h"

namespace fcp {

std::string serialize_onnx(const Graph& graph);

// Atomic: the file is there whole or not at all.
void write_onnx(const Graph& graph, const std::string& path);

}  // namespace fcp
