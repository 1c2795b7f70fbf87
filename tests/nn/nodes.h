// Nodes and tensors' descriptions for the graphs of tests, without libtorch.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fcp/nn/graph/graph.h"

namespace fcp {

inline Node make_node(const std::string& op, std::vector<std::string> inputs,
                      std::vector<std::string> outputs,
                      std::map<std::string, Attribute> attributes = {}) {
  Node node;
  node.op = op;
  node.name = outputs.empty() ? op : outputs[0] + "_node";
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  node.attributes = std::move(attributes);
  return node;
}

inline TensorInfo make_info(const std::string& name, std::vector<int64_t> shape = {}) {
  TensorInfo info;
  info.name = name;
  info.known_rank = !shape.empty();
  info.shape = std::move(shape);
  info.dimension_names.assign(info.shape.size(), "");
  return info;
}

// x [N, 2] → Gemm z1 → Relu h1 → Gemm → y [N, 1].
inline Graph make_layers() {
  Graph graph;
  graph.inputs = {make_info("x", {kDynamic, 2})};
  graph.outputs = {make_info("y", {kDynamic, 1})};
  graph.initializers["w1"] = constant_tensor<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  graph.initializers["b1"] = constant_tensor<float>({0, 1, 2});
  graph.initializers["w2"] = constant_tensor<float>({1, -1, 0.5}, {3, 1});
  graph.nodes = {make_node("Gemm", {"x", "w1", "b1"}, {"z1"}), make_node("Relu", {"z1"}, {"h1"}),
                 make_node("Gemm", {"h1", "w2"}, {"y"})};
  return graph;
}

}  // namespace fcp
