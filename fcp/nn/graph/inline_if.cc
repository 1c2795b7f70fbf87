#include "fcp/nn/graph/inline_if.h"

#include <map>
#include <utility>
#include <vector>

#include "fcp/base/error.h"

namespace fcp {
namespace {

bool is_if(const onnx::NodeProto& node) {
  return node.op_type() == "If" && (node.domain().empty() || node.domain() == "ai.onnx");
}

int next_if(const onnx::GraphProto& graph, int first) {
  for (int i = first; i < graph.node_size(); ++i) {
    if (is_if(graph.node(i))) return i;
  }
  return -1;
}

// In a graph inside a node, names from outside are renamed; its own stay.
void rename_inside(onnx::GraphProto& graph, const TensorNames& names) {
  TensorNames outside = names;
  for (const auto& input : graph.input()) outside.erase(input.name());
  for (const auto& tensor : graph.initializer()) outside.erase(tensor.name());
  for (const auto& node : graph.node()) {
    for (const std::string& output : node.output()) outside.erase(output);
  }
  for (auto& node : *graph.mutable_node()) rename_tensors(node, outside);
  for (auto& output : *graph.mutable_output()) {
    const auto found = outside.find(output.name());
    if (found != outside.end()) output.set_name(found->second);
  }
}

}  // namespace

void rename_tensors(onnx::NodeProto& node, const TensorNames& names) {
  const auto renamed = [&](std::string& name) {
    const auto found = names.find(name);
    if (found != names.end()) name = found->second;
  };
  for (std::string& input : *node.mutable_input()) renamed(input);
  for (std::string& output : *node.mutable_output()) renamed(output);
  for (auto& attribute : *node.mutable_attribute()) {
    if (attribute.has_g()) rename_inside(*attribute.mutable_g(), names);
  }
}

namespace {

onnx::GraphProto taken_branch(const onnx::NodeProto& node, bool truth, const std::string& owner) {
  const std::string wanted = truth ? "then_branch" : "else_branch";
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == wanted && attribute.has_g()) {
      if (attribute.g().output_size() != node.output_size()) break;
      return attribute.g();
    }
  }
  fail(owner, ": has no ", wanted, " with ", node.output_size(), " outputs");
}

// The branch's nodes, in the names of the graph around it.
std::vector<onnx::NodeProto> nodes_of(onnx::GraphProto branch, const onnx::NodeProto& node,
                                      onnx::GraphProto& graph) {
  const std::string prefix = node.output(0) + "/branch/";
  TensorNames names;
  for (auto& tensor : *branch.mutable_initializer()) {
    names[tensor.name()] = prefix + tensor.name();
    tensor.set_name(prefix + tensor.name());
    *graph.add_initializer() = std::move(tensor);
  }
  for (const auto& each : branch.node()) {
    for (const std::string& output : each.output()) {
      if (!output.empty()) names[output] = prefix + output;
    }
  }
  std::vector<onnx::NodeProto> nodes;
  for (auto& each : *branch.mutable_node()) {
    rename_tensors(each, names);
    nodes.push_back(std::move(each));
  }
  for (int i = 0; i < node.output_size(); ++i) {
    const auto inside = names.find(branch.output(i).name());
    onnx::NodeProto identity;
    identity.set_op_type("Identity");
    identity.set_name(node.name());
    identity.add_input(inside == names.end() ? branch.output(i).name() : inside->second);
    identity.add_output(node.output(i));
    nodes.push_back(std::move(identity));
  }
  return nodes;
}

}  // namespace

void inline_if(onnx::GraphProto& graph, const std::string& file, const KnownTruth& truth) {
  int left = 0;  // of the nodes looked at, those that stay
  for (int place = next_if(graph, 0); place >= 0; place = next_if(graph, left)) {
    const onnx::NodeProto node = graph.node(place);
    const std::string owner = concat(file, ": If node '", node.name(), "'");
    if (node.input_size() != 1 || node.output_size() < 1) fail(owner, ": expected one condition");
    const std::optional<bool> taken = truth(graph, node.input(0), place);
    if (!taken) {
      left = place + 1;
      continue;
    }
    std::vector<onnx::NodeProto> nodes;
    for (int i = 0; i < place; ++i) nodes.push_back(std::move(*graph.mutable_node(i)));
    for (auto& each : nodes_of(taken_branch(node, *taken, owner), node, graph)) {
      nodes.push_back(std::move(each));
    }
    for (int i = place + 1; i < graph.node_size(); ++i) {
      nodes.push_back(std::move(*graph.mutable_node(i)));
    }
    graph.clear_node();
    for (auto& each : nodes) *graph.add_node() = std::move(each);
  }
}

}  // namespace fcp
