// A network as ONNX describes it: nodes, constant tensors, inputs and outputs. Plain data, exactly
// what the file says, so that reading and writing again loses nothing; network.h makes it run.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "fcp/nn/graph/constant_tensor.h"

namespace fcp {

struct Graph;

// A graph inside a node: the branches of If, the body of Loop and Scan. Its inputs are its own and,
// after them, one for each tensor of the graph around it that it reads (Node::captured).
using Subgraph = std::shared_ptr<const Graph>;

using Attribute = std::variant<int64_t, float, std::string, ConstantTensor, std::vector<int64_t>,
                               std::vector<float>, std::vector<std::string>, Subgraph>;

struct Node {
  std::string name;                  // may be empty in the file
  std::string op;                    // "Conv"
  std::string domain;                // "" is ONNX's own
  std::vector<std::string> inputs;   // "" stands for an optional input that is absent
  std::vector<std::string> outputs;  // "" stands for an optional output nobody wants
  std::map<std::string, Attribute> attributes;
  size_t captured = 0;  // the last of the inputs: what its graphs read from around the node
};

constexpr int64_t kDynamic = -1;

// Name, type and shape of an input or output; a dimension of kDynamic is known only when running.
struct TensorInfo {
  std::string name;
  ElementType type = ElementType::kFloat;  // Undefined, inside nodes only: what it is given
  bool known_rank = true;  // false: the file says nothing about the shape, which is then empty
  std::vector<int64_t> shape;
  std::vector<std::string> dimension_names;  // "batch", or "" where the file gives a number
};

struct Graph {
  std::string name;
  int64_t opset = 17;
  std::map<std::string, int64_t> domains;  // other operator sets: "ai.onnx.ml" to its version
  int64_t ir_version = 8;
  std::vector<Node> nodes;  // in an order in which every node follows what it needs
  std::map<std::string, ConstantTensor> initializers;
  std::vector<TensorInfo> inputs;  // without the initializers that old files list here
  std::vector<TensorInfo> outputs;
  std::map<std::string, std::string> metadata;
};

// "Conv node 'layer1.0.conv1'", or "Conv node making 'x12'" where the node has no name.
std::string describe(const Node& node);

// Brings the nodes into an order in which every node follows what it needs, and checks the graph:
// each tensor made once, each input of a node made by somebody, no cycle, each output made.
// Throws an Error that names the node and the tensor.
void sort_and_check(Graph& graph);

}  // namespace fcp
