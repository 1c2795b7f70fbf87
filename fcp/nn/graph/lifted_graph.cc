#include "fcp/nn/graph/lifted_graph.h"

#include "fcp/base/error.h"

namespace fcp {

LiftedGraph::LiftedGraph(Graph graph) : graph_(std::move(graph)) { graph_.nodes.clear(); }

void LiftedGraph::set_constant(const std::string& name, const ConstantTensor& value) {
  graph_.initializers[name] = value;
}

ConstantTensor LiftedGraph::constant(const std::string& name) const {
  const auto found = graph_.initializers.find(name);
  return found == graph_.initializers.end() ? ConstantTensor() : found->second;
}

std::string LiftedGraph::new_name() { return concat("fcp.rows_first/", made_++); }

std::string LiftedGraph::integers(const std::vector<int64_t>& values) {
  const std::string name = new_name();
  graph_.initializers[name] = constant_tensor(values);
  return name;
}

void LiftedGraph::add(Node node, std::vector<std::string> inputs) {
  node.inputs = std::move(inputs);
  for (std::string& output : node.outputs) {
    if (!output.empty()) output = lifted(output);
  }
  graph_.nodes.push_back(std::move(node));
}

void LiftedGraph::add_between(Node node, std::vector<std::string> inputs) {
  const std::string output = node.outputs[0], inner = new_name();
  node.inputs = std::move(inputs);
  node.outputs = {inner};
  graph_.nodes.push_back(std::move(node));
  reshape(inner, output, shape(output));
}

void LiftedGraph::reshape(const std::string& from, const std::string& to, LiftedShape rows) {
  rows.insert(rows.begin(), -1);
  graph_.nodes.push_back({lifted(to), "Reshape", "", {from, integers(rows)}, {lifted(to)}, {}});
}

std::string LiftedGraph::reshaped(const std::string& from, LiftedShape rows) {
  const std::string name = new_name();
  rows.insert(rows.begin(), -1);
  graph_.nodes.push_back({name, "Reshape", "", {from, integers(rows)}, {name}, {}});
  return name;
}

std::string LiftedGraph::with_rank(const std::string& name, size_t rank) {
  LiftedShape rows = shape(name);
  if (rows.size() >= rank) return lifted(name);
  rows.insert(rows.begin(), rank - rows.size(), 1);
  return reshaped(lifted(name), rows);
}

void LiftedGraph::finish(const std::string& output) {
  if (!varies(output)) return;
  LiftedShape rows = shape(output);
  if (rows.empty() || rows[0] != 1) fail("output '", output, "' does not have its rows first");
  rows[0] = -1;
  graph_.nodes.push_back({output, "Reshape", "", {lifted(output), integers(rows)}, {output}, {}});
}

Graph LiftedGraph::take() {
  sort_and_check(graph_);
  return std::move(graph_);
}

}  // namespace fcp
