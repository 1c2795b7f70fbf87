#include "fcp/nn/graph/select_first.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/ops/op.h"
#include "fcp/nn/runtime/network.h"

namespace fcp {
namespace {

// A linear layer and the node that selects among its outputs.
struct SelectedLayer {
  size_t selection = 0;  // place of the Gather or GatherND
  const Node* flatten = nullptr;
  const Node* product = nullptr;
  const Node* sum = nullptr;  // of the bias; its constant is `bias`
  std::string bias;
};

class SelectionFinder {
 public:
  explicit SelectionFinder(const Graph& graph) : graph_(graph) {
    for (const Node& node : graph.nodes) {
      for (const std::string& output : node.outputs) made_by_[output] = &node;
    }
  }

  std::optional<SelectedLayer> find(size_t place) const {
    const Node& node = graph_.nodes[place];
    const bool flat =
        node.op == "Gather" && OpArguments(node, graph_.opset).integer("axis", 0) == 0;
    const bool deep =
        node.op == "GatherND" && OpArguments(node, graph_.opset).integer("batch_dims", 0) == 0;
    if (!node.domain.empty() || (!flat && !deep)) return std::nullopt;
    SelectedLayer layer;
    layer.selection = place;
    std::string data = node.inputs[0];
    if (flat) {
      layer.flatten = maker(data, "Flatten");
      if (layer.flatten == nullptr) return std::nullopt;
      data = layer.flatten->inputs[0];
    }
    layer.sum = maker(data, "Add");
    if (layer.sum != nullptr) {
      const bool first = constant(layer.sum->inputs[0], 1);
      if (!first && !constant(layer.sum->inputs[1], 1)) return std::nullopt;
      layer.bias = layer.sum->inputs[first ? 0 : 1];
      data = layer.sum->inputs[first ? 1 : 0];
    }
    layer.product = maker(data, "MatMul");
    if (layer.product == nullptr || !constant(layer.product->inputs[1], 2)) return std::nullopt;
    return layer;
  }

 private:
  const Node* maker(const std::string& tensor, const std::string& op) const {
    const auto found = made_by_.find(tensor);
    const bool is_it =
        found != made_by_.end() && found->second->op == op && found->second->domain.empty();
    return is_it ? found->second : nullptr;
  }
  bool constant(const std::string& tensor, int64_t rank) const {
    const auto found = graph_.initializers.find(tensor);
    return found != graph_.initializers.end() && found->second.dim() == rank;
  }

  const Graph& graph_;
  std::map<std::string, const Node*> made_by_;
};

// Whether the selection leaves the last axis, along which the layer computes, as it is. A network
// that does not run on zeros does not tell.
bool keeps_last_axis(const Graph& graph, const SelectedLayer& layer) {
  const Node& selection = graph.nodes[layer.selection];
  Tensors values;
  try {
    const std::vector<std::string> names = {layer.product->inputs[0], selection.inputs[1]};
    values = values_at_zero(graph, names, 2);
    if (values.empty()) values = values_at_zero(graph, names, 1);  // the file may fix one row
  } catch (const Error&) {
    return false;
  }
  if (values.empty() || values[0].dim() < 2) return false;
  const int64_t last = values[0].dim() - 1;
  if (layer.flatten != nullptr)
    return OpArguments(*layer.flatten, graph.opset).integer("axis", 1) == last;
  return values[1].dim() > 0 && values[1].size(-1) <= last;
}

std::vector<Node> selected_first(const Graph& graph, const SelectedLayer& layer) {
  const Node& selection = graph.nodes[layer.selection];
  const std::string& output = selection.outputs[0];
  const auto named = [&](const char* what) { return output + "/selected_first_" + what; };
  std::vector<Node> nodes;
  std::string value = layer.product->inputs[0];
  const auto add = [&](Node node, std::vector<std::string> inputs, const std::string& name) {
    node.name = name;
    node.inputs = std::move(inputs);
    node.outputs = {name};
    nodes.push_back(std::move(node));
    return name;
  };
  if (layer.flatten != nullptr) value = add(*layer.flatten, {value}, named("flat"));
  value = add(selection, {value, selection.inputs[1]}, named("token"));
  const bool biased = layer.sum != nullptr;
  value =
      add(*layer.product, {value, layer.product->inputs[1]}, biased ? named("product") : output);
  if (biased) add(*layer.sum, {value, layer.bias}, output);
  return nodes;
}

}  // namespace

Graph select_first(Graph graph) {
  std::map<size_t, std::vector<Node>> replaced;
  const SelectionFinder finder(graph);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const std::optional<SelectedLayer> layer = finder.find(i);
    if (layer && keeps_last_axis(graph, *layer)) replaced[i] = selected_first(graph, *layer);
  }
  if (replaced.empty()) return graph;
  std::vector<Node> nodes;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto found = replaced.find(i);
    if (found == replaced.end()) {
      nodes.push_back(graph.nodes[i]);
    } else {
      nodes.insert(nodes.end(), found->second.begin(), found->second.end());
    }
  }
  graph.nodes = std::move(nodes);
  return graph;
}

}  // namespace fcp
