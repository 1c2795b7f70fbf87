#include "fcp/nn/graph/narrow_tensors.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/nn/ops/types.h"

namespace fcp {
namespace {

using NarrowTypes = std::map<std::string, int64_t>;  // of the tensors that are narrow

constexpr int64_t kTypedQuantizeOpset = 21;  // from which on QuantizeLinear has output_dtype

void set_integer(onnx::NodeProto& node, const std::string& name, int64_t value) {
  onnx::AttributeProto* attribute = nullptr;
  for (auto& each : *node.mutable_attribute()) {
    if (each.name() == name) attribute = &each;
  }
  if (attribute == nullptr) attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INT);
  attribute->set_i(value);
}

onnx::NodeProto cast_to(const std::string& from, const std::string& to, int64_t type) {
  onnx::NodeProto node;
  node.set_op_type("Cast");
  node.set_name(from + "/cast");
  node.add_input(from);
  node.add_output(to);
  set_integer(node, "to", type);
  if (type == kOnnxFloat8E5M2) set_integer(node, "saturate", 0);  // its infinities stay
  return node;
}

int64_t type_of(const NarrowTypes& types, const onnx::NodeProto& node, int input) {
  if (node.input_size() <= input) return 0;
  const auto found = types.find(node.input(input));
  return found == types.end() ? 0 : found->second;
}

// The narrow type of a node's outputs where it has one, otherwise 0.
int64_t type_made(const NarrowTypes& types, const onnx::NodeProto& node) {
  for (const auto& attribute : node.attribute()) {
    const bool named = attribute.name() == "to" || attribute.name() == "output_dtype";
    if (named && attribute.i() != 0) return is_narrow(attribute.i()) ? attribute.i() : 0;
  }
  if (node.op_type() == "QuantizeLinear") return type_of(types, node, 2);
  if (!keeps_narrow_type(node.op_type())) return 0;
  for (int i = 0; i < node.input_size(); ++i) {
    if (const int64_t type = type_of(types, node, i)) return type;
  }
  return 0;
}

// Whether an operator reads narrow numbers as they are meant, in the wider type that holds them.
bool takes_narrow(const onnx::NodeProto& node) {
  static const std::set<std::string> kReaders = {
      "Cast", "DequantizeLinear", "Equal", "Greater",        "GreaterOrEqual", "If",
      "Less", "LessOrEqual",      "Loop",  "QuantizeLinear", "Scan",           "Shape",
      "Size"};
  return keeps_narrow_type(node.op_type()) || kReaders.contains(node.op_type());
}

class NarrowCaster {
 public:
  NarrowCaster(int64_t opset, const std::string& file) : opset_(opset), file_(file) {}

  void work(onnx::GraphProto& graph, NarrowTypes types) const {
    std::vector<onnx::NodeProto> nodes;
    const std::string suffix = "/wide";
    for (auto& tensor : *graph.mutable_initializer()) {
      if (!is_narrow(tensor.data_type())) continue;
      const std::string name = tensor.name();
      tensor.set_name(name + suffix);
      nodes.push_back(cast_to(name + suffix, name, tensor.data_type()));
      types[name] = tensor.data_type();
      drop_input(graph, name);
    }
    const size_t added = nodes.size();
    for (auto& node : *graph.mutable_node()) {
      for (auto& attribute : *node.mutable_attribute()) {
        if (attribute.has_g()) work(*attribute.mutable_g(), types);
      }
      const int64_t constant = narrow_constant(node);
      if (constant != 0) {
        const std::string name = node.output(0);
        node.set_output(0, name + suffix);
        nodes.push_back(std::move(node));
        nodes.push_back(cast_to(name + suffix, name, constant));
        types[name] = constant;
        continue;
      }
      say_type(node, types);
      expect_taken(node, types);
      const int64_t type = type_made(types, node);
      for (int i = 0; type != 0 && i < node.output_size(); ++i) types[node.output(i)] = type;
      nodes.push_back(std::move(node));
    }
    if (added == 0 && nodes.size() == static_cast<size_t>(graph.node_size())) {
      for (size_t i = 0; i < nodes.size(); ++i) {
        *graph.mutable_node(static_cast<int>(i)) = std::move(nodes[i]);
      }
      return;
    }
    graph.clear_node();
    for (auto& node : nodes) *graph.add_node() = std::move(node);
  }

 private:
  // Old files list initializers among the inputs.
  static void drop_input(onnx::GraphProto& graph, const std::string& name) {
    for (int i = graph.input_size() - 1; i >= 0; --i) {
      if (graph.input(i).name() == name) graph.mutable_input()->DeleteSubrange(i, 1);
    }
  }

  static int64_t narrow_constant(const onnx::NodeProto& node) {
    if (node.op_type() != "Constant" || node.output_size() != 1) return 0;
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_t() && is_narrow(attribute.t().data_type())) {
        return attribute.t().data_type();
      }
    }
    return 0;
  }

  void say_type(onnx::NodeProto& node, const NarrowTypes& types) const {
    if (node.op_type() == "CastLike") {
      const int64_t type = type_of(types, node, 1);
      if (type == 0) return;
      node.set_op_type("Cast");
      node.mutable_input()->DeleteSubrange(1, 1);
      set_integer(node, "to", type);
    }
    if (node.op_type() == "QuantizeLinear" && opset_ >= kTypedQuantizeOpset &&
        node.domain() != "com.microsoft") {
      const int64_t type = type_of(types, node, 2);
      if (type != 0) set_integer(node, "output_dtype", type);
    }
  }

  void expect_taken(const onnx::NodeProto& node, const NarrowTypes& types) const {
    for (int i = 0; i < node.input_size(); ++i) {
      const int64_t type = type_of(types, node, i);
      if (type == 0 || takes_narrow(node)) continue;
      fail(file_, ": ", node.op_type(), " node '", node.name(), "': computes with '", node.input(i),
           "' of ONNX's type number ", type,
           ", whose numbers are moved, cast and dequantised alone; expected a Cast before it");
    }
  }

  int64_t opset_;
  const std::string& file_;
};

}  // namespace

void cast_narrow_tensors(onnx::GraphProto& graph, int64_t opset, const std::string& file) {
  NarrowCaster(opset, file).work(graph, {});
}

}  // namespace fcp
