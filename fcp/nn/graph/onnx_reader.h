// Reads an ONNX file (operator sets 7 to 24) into a Graph.
//
// The file is not trusted: declared sizes are checked against the bytes that are there before
// anything is allocated, external data must lie in the model's own folder, and cycles, missing
// tensors and unsupported parts are errors that name the node or tensor.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fcp/nn/graph/graph.h"

namespace fcp {

constexpr int64_t kOldestOpset = 7;
constexpr int64_t kNewestOpset = 24;

// What reading asks of those who can run operators (fcp/nn/runtime/read_onnx.cc). The defaults run
// none: then a condition, the length of a sequence or the number of turns of a loop is known where
// a constant says it, and inputs of text are refused.
struct OnnxOperators {
  // The graph's one output where it depends on no more than the inputs' shapes.
  std::function<std::optional<ConstantTensor>(const Graph&)> value;
  // Makes numbers of these inputs, which are text.
  std::function<void(Graph&, const std::vector<std::string>& inputs)> number_texts;

  OnnxOperators();
};

Graph read_onnx(const std::string& path, const OnnxOperators& operators);

// The same from bytes in memory. `folder` is where external data may lie; with an empty one
// external data is refused. `name` stands for the file in messages.
Graph parse_onnx(std::string_view bytes, const std::string& name, const std::string& folder,
                 const OnnxOperators& operators);

// The same with all operators, which takes libtorch.
Graph read_onnx(const std::string& path);
Graph parse_onnx(std::string_view bytes, const std::string& name, const std::string& folder = "");

}  // namespace fcp
