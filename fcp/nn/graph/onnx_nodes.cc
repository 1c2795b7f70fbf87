#include "fcp/nn/graph/onnx_nodes.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/nn/graph/onnx_tensor.h"

namespace fcp {
namespace {

Graph read_inside(const onnx::GraphProto& message, const std::string& owner,
                  const std::string& folder);

// What a graph reads or gives without making it or having it as an input.
std::vector<std::string> names_from_outside(const Graph& graph) {
  std::set<std::string> known;
  for (const auto& [name, tensor] : graph.initializers) known.insert(name);
  for (const TensorInfo& input : graph.inputs) known.insert(input.name);
  for (const Node& node : graph.nodes) known.insert(node.outputs.begin(), node.outputs.end());
  std::vector<std::string> names;
  const auto take = [&](const std::string& name) {
    if (!name.empty() && known.insert(name).second) names.push_back(name);
  };
  for (const Node& node : graph.nodes) {
    for (const std::string& input : node.inputs) take(input);
  }
  for (const TensorInfo& output : graph.outputs) take(output.name);
  return names;
}

Attribute read_attribute(const onnx::AttributeProto& message, const std::string& owner,
                         const std::string& folder) {
  using Proto = onnx::AttributeProto;
  switch (message.type()) {
    case Proto::INT:
      return message.i();
    case Proto::FLOAT:
      return message.f();
    case Proto::STRING:
      return message.s();
    case Proto::TENSOR:
      return tensor_from_onnx(message.t(), concat(owner, ", attribute '", message.name(), "'"),
                              folder);
    case Proto::INTS:
      return std::vector<int64_t>(message.ints().begin(), message.ints().end());
    case Proto::FLOATS:
      return std::vector<float>(message.floats().begin(), message.floats().end());
    case Proto::STRINGS:
      return std::vector<std::string>(message.strings().begin(), message.strings().end());
    case Proto::GRAPH:
      return std::make_shared<const Graph>(read_inside(message.g(), owner, folder));
    default:
      fail(owner, ": attribute '", message.name(), "' is of a type that is not supported");
  }
}

// What the graphs inside a node read from around it become inputs of the node and of each graph.
void capture(Node& node, const std::string& owner) {
  std::vector<std::string> names;
  for (const auto& [key, value] : node.attributes) {
    const auto* inner = std::get_if<Subgraph>(&value);
    if (inner == nullptr) continue;
    for (const std::string& name : names_from_outside(**inner)) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  for (auto& [key, value] : node.attributes) {
    auto* inner = std::get_if<Subgraph>(&value);
    if (inner == nullptr) continue;
    Graph whole = **inner;
    for (const std::string& name : names) {
      TensorInfo info;
      info.name = name;
      info.type = ElementType::kUndefined;
      info.known_rank = false;
      whole.inputs.push_back(info);
    }
    try {
      sort_and_check(whole);
    } catch (const Error& error) {
      fail(owner, ": in its '", key, "', ", error.what());
    }
    *inner = std::make_shared<const Graph>(std::move(whole));
  }
  node.inputs.insert(node.inputs.end(), names.begin(), names.end());
  node.captured = names.size();
}

// An input or output of a graph inside a node; the file may say nothing of it but its name.
TensorInfo read_info_inside(const onnx::ValueInfoProto& message, const std::string& owner) {
  const auto& type = message.type();
  if (type.has_sequence_type() || type.has_map_type()) {
    fail(owner, ": '", message.name(), "' is a sequence or map, which is not supported");
  }
  TensorInfo info;
  info.name = message.name();
  info.type = element_type(type.tensor_type().elem_type()).value_or(ElementType::kUndefined);
  // Kept for the file that is written again: ONNX Runtime refuses a Loop whose body does not say
  // that its counter is a single number. The operators that run the graph do not look at shapes.
  info.known_rank = type.tensor_type().has_shape();
  for (const auto& dimension : type.tensor_type().shape().dim()) {
    info.shape.push_back(dimension.has_dim_value() ? dimension.dim_value() : kDynamic);
    info.dimension_names.push_back(dimension.dim_param());
  }
  return info;
}

Graph read_inside(const onnx::GraphProto& message, const std::string& owner,
                  const std::string& folder) {
  Graph graph;
  graph.name = message.name();
  for (const auto& tensor : message.initializer()) {
    const std::string place = concat(owner, ": initializer '", tensor.name(), "'");
    graph.initializers[tensor.name()] = tensor_from_onnx(tensor, place, folder);
  }
  for (const auto& node : message.node()) graph.nodes.push_back(read_node(node, owner, folder));
  for (const auto& input : message.input()) {
    if (graph.initializers.contains(input.name())) continue;
    graph.inputs.push_back(read_info_inside(input, owner));
  }
  for (const auto& output : message.output()) {
    graph.outputs.push_back(read_info_inside(output, owner));
  }
  return graph;
}

}  // namespace

Node read_node(const onnx::NodeProto& message, const std::string& file, const std::string& folder) {
  Node node;
  node.name = message.name();
  node.op = message.op_type();
  node.domain = message.domain() == "ai.onnx" ? "" : message.domain();
  node.inputs.assign(message.input().begin(), message.input().end());
  node.outputs.assign(message.output().begin(), message.output().end());
  const std::string owner = concat(file, ": ", describe(node));
  for (const auto& attribute : message.attribute()) {
    if (!node.attributes.emplace(attribute.name(), read_attribute(attribute, owner, folder))
             .second) {
      fail(owner, ": attribute '", attribute.name(), "' appears twice");
    }
  }
  capture(node, owner);
  return node;
}

std::vector<std::string> tensors_read(const onnx::NodeProto& node) {
  std::vector<std::string> names(node.input().begin(), node.input().end());
  for (const auto& attribute : node.attribute()) {
    for (const auto& inner : attribute.g().node()) {
      for (std::string& name : tensors_read(inner)) names.push_back(std::move(name));
    }
    for (const auto& output : attribute.g().output()) names.push_back(output.name());
  }
  return names;
}

}  // namespace fcp
