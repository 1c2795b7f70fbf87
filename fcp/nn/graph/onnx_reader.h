// Reads an ONNX file (operator sets 7 to 24) into a Graph.
//
// The file is not trusted: declared sizes are checked against the bytes that are there before
// anything is allocated, external data must lie in the model's own folder, and cycles, missing
// tensors and unsupported parts are errors that name the node or tensor.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fcp/nn/graph/graph.h"

namespace fcp {

constexpr int64_t kOldestOpset = 7;
constexpr int64_t kNewestOpset = 24;

Graph read_onnx(const std::string& path);

// The same from bytes in memory. `folder` is where external data may lie; with an empty one
// external data is refused. `name` stands for the file in messages.
Graph parse_onnx(std::string_view bytes, const std::string& name, const std::string& folder = "");

}  // namespace fcp
