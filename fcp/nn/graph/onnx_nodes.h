// Nodes out of an ONNX message, with the graphs inside them.
//
// A graph inside a node (a branch of If, the body of Loop or Scan) may read any tensor around it by
// name. Here such tensors become further inputs of the node and of its graphs (Node::captured), so
// that whoever looks at a node's inputs sees all that it needs.
#pragma once

#include <string>
#include <vector>

#include "fcp/nn/graph/graph.h"
#include "fcp/nn/graph/onnx_tensor.h"

namespace fcp {

// `file` names the file in errors; external data lies below `folder`.
Node read_node(const onnx::NodeProto& message, const std::string& file, const std::string& folder);

// What a node and the graphs inside it read; tensors that these make themselves are among it.
std::vector<std::string> tensors_read(const onnx::NodeProto& node);

}  // namespace fcp
