#include "fcp/export/graph_builder.h"

#include <algorithm>
#include <utility>

#include "fcp/base/error.h"

namespace fcp {

namespace {

// A node whose meaning, or whose attributes, operator set 9 changed.
bool changed_by_nine(const Node& node) {
  if (!node.domain.empty()) return false;
  return node.op == "Upsample" || node.op == "Scan" || node.attributes.contains("spatial");
}

// Operator sets 7 and 8 say the same as 9 of all other nodes. Initializers that are not inputs too,
// as those that export adds, need version 4 of the format.
void raise_to_nine(Graph& graph) {
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), changed_by_nine)) {
    graph.opset = std::max<int64_t>(graph.opset, kLeastExportOpset);
  }
  graph.ir_version = std::max<int64_t>(graph.ir_version, 4);
}

}  // namespace

GraphBuilder::GraphBuilder(Graph graph) : graph_(std::move(graph)) {
  raise_to_nine(graph_);
  if (graph_.opset < kLeastExportOpset) {
    fail("the network is of ONNX operator set ", graph_.opset, ", export needs ", kLeastExportOpset,
         " or later");
  }
  for (const TensorInfo& input : graph_.inputs) tensors_.insert(input.name);
  for (const auto& [name, value] : graph_.initializers) tensors_.insert(name);
  for (const Node& node : graph_.nodes) tensors_.insert(node.outputs.begin(), node.outputs.end());
}

std::string GraphBuilder::fresh(const std::string& stem) {
  std::string name;
  do {
    name = concat("fcp/", stem, "_", made_++);
  } while (!tensors_.insert(name).second);
  return name;
}

std::string GraphBuilder::add(const std::string& op, std::vector<std::string> inputs,
                              std::map<std::string, Attribute> attributes) {
  Node node;
  node.op = op;
  node.outputs = {fresh(op)};
  node.name = node.outputs[0];
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  graph_.nodes.push_back(std::move(node));
  return graph_.nodes.back().outputs[0];
}

std::vector<std::string> GraphBuilder::copy(const Node& node, std::vector<std::string> inputs) {
  Node twin = node;
  twin.inputs = std::move(inputs);
  for (std::string& output : twin.outputs) {
    if (!output.empty()) output = fresh(node.op);
  }
  twin.name = twin.outputs[0];
  graph_.nodes.push_back(twin);
  return twin.outputs;
}

std::string GraphBuilder::constant(const torch::Tensor& value) {
  const std::string name = fresh("constant");
  graph_.initializers[name] = value.contiguous();
  return name;
}

std::string GraphBuilder::tensor_or(const std::string& name, const torch::Tensor& value) {
  if (tensors_.insert(name).second) graph_.initializers[name] = value.contiguous();
  return name;
}

// The axes are an attribute up to operator set 12 (ReduceSum) or 17, an input since.
std::string GraphBuilder::reduce(const std::string& op, const std::string& x, int64_t axis,
                                 bool keep) {
  std::map<std::string, Attribute> attributes = {{"keepdims", int64_t{keep}}};
  std::vector<std::string> inputs = {x};
  if (graph_.opset >= (op == "ReduceSum" ? 13 : 18)) {
    inputs.push_back(constant(torch::tensor({axis}, torch::kLong)));
  } else {
    attributes["axes"] = std::vector<int64_t>{axis};
  }
  return add(op, std::move(inputs), std::move(attributes));
}

// TopK gives the largest first, whatever the operator set; since 10 the count is an input.
std::string GraphBuilder::sort(const std::string& x, int64_t count) {
  Node node;
  node.op = "TopK";
  node.inputs = {add("Neg", {x})};
  node.attributes = {{"axis", int64_t{-1}}};
  if (graph_.opset >= 10) {
    node.inputs.push_back(constant(torch::tensor({count}, torch::kLong)));
  } else {
    node.attributes["k"] = count;
  }
  node.outputs = {"values", "places"};  // names are made by copy
  return add("Neg", {copy(node, node.inputs)[0]});
}

std::string GraphBuilder::reshape_rows(const std::string& x, std::vector<int64_t> row_shape) {
  row_shape.insert(row_shape.begin(), 0);
  return add("Reshape", {x, constant(torch::tensor(row_shape, torch::kLong))});
}

void GraphBuilder::output(const std::string& tensor, const TensorInfo& info) {
  if (!tensors_.insert(info.name).second) {
    fail("the network has a tensor '", info.name,
         "' already; --prefix gives the new outputs other names");
  }
  Node node;
  node.op = "Identity";
  node.name = info.name;
  node.inputs = {tensor};
  node.outputs = {info.name};
  graph_.nodes.push_back(std::move(node));
  graph_.outputs.push_back(info);
}

Graph GraphBuilder::finish() && {
  sort_and_check(graph_);
  return std::move(graph_);
}

}  // namespace fcp
