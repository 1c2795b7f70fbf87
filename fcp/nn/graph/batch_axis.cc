#include "fcp/nn/graph/batch_axis.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/nn/runtime/network.h"

namespace fcp {
namespace {

bool is_named_batch(const TensorInfo& info, size_t axis) {
  if (axis >= info.dimension_names.size()) return false;
  std::string name = info.dimension_names[axis];
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name == "n" || name.find("batch") != std::string::npos;
}

// Of an input that may have its rows in the second axis: whether its names say so; none: it has
// not.
std::optional<bool> has_rows_second(const TensorInfo& info) {
  if (!info.known_rank || info.shape.size() < 2 || info.shape[1] != kDynamic) return std::nullopt;
  if (is_named_batch(info, 0)) return std::nullopt;
  if (is_named_batch(info, 1)) return true;
  const auto open = std::count(info.shape.begin(), info.shape.end(), kDynamic);
  return open == 1 ? std::optional(false) : std::nullopt;
}

bool in_subgraphs(const Graph& network, const std::string& name) {
  return std::any_of(network.nodes.begin(), network.nodes.end(), [&](const Node& node) {
    return node.captured > 0 &&
           std::find(node.inputs.begin(), node.inputs.end(), name) != node.inputs.end();
  });
}

std::vector<int64_t> swapped_order(size_t rank) {
  std::vector<int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[0], order[1]);
  return order;
}

void swap_axes(TensorInfo& info) {
  std::swap(info.shape[0], info.shape[1]);
  if (info.dimension_names.size() > 1) std::swap(info.dimension_names[0], info.dimension_names[1]);
}

Node node_of(const char* op, std::vector<std::string> inputs, const std::string& output) {
  Node node;
  node.name = output + "/rows";
  node.op = op;
  node.inputs = std::move(inputs);
  node.outputs = {output};
  return node;
}

void rename(std::vector<std::string>& names, const std::string& from, const std::string& to) {
  std::replace(names.begin(), names.end(), from, to);
}

void move_input(Graph& network, size_t i) {
  TensorInfo& info = network.inputs[i];
  const std::string inside = info.name + "/rows_second";
  for (Node& node : network.nodes) rename(node.inputs, info.name, inside);
  for (TensorInfo& output : network.outputs) {
    if (output.name == info.name) fail("input '", info.name, "' is an output too");
  }
  swap_axes(info);
  Node node = node_of("Transpose", {info.name}, inside);
  node.attributes["perm"] = swapped_order(info.shape.size());
  network.nodes.insert(network.nodes.begin(), std::move(node));
}

// Puts a node between what makes an output and the output.
void change_output(Graph& network, size_t i, Node node) {
  const std::string name = network.outputs[i].name, inside = name + "/rows_apart";
  for (Node& other : network.nodes) {
    rename(other.inputs, name, inside);
    rename(other.outputs, name, inside);
  }
  node.inputs.insert(node.inputs.begin(), inside);
  network.nodes.push_back(std::move(node));
}

using OutputShapes = std::vector<std::vector<int64_t>>;

// Of so many rows of zeros; none: the network does not run on them.
std::optional<OutputShapes> shapes_of_rows(const Graph& network, int64_t rows) {
  try {
    const torch::NoGradGuard no_gradients;
    const Tensors inputs = zero_inputs(network, rows);
    if (inputs.empty()) return std::nullopt;
    OutputShapes shapes;
    for (const torch::Tensor& output : Network(network).run(inputs)) {
      shapes.push_back(output.sizes().vec());
    }
    return shapes;
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool follows(const OutputShapes& two, const OutputShapes& three, size_t output, size_t axis) {
  return two[output].size() > axis && three[output].size() == two[output].size() &&
         two[output][axis] == 2 && three[output][axis] == 3;
}

// The numbers of a row that stand below each other; 1: they do not.
int64_t stacked(const std::vector<int64_t>& two, const std::vector<int64_t>& three) {
  if (two.empty() || two.size() != three.size()) return 1;
  const bool multiple = two[0] % 2 == 0 && two[0] > 2 && three[0] == two[0] / 2 * 3;
  return multiple && std::equal(two.begin() + 1, two.end(), three.begin() + 1) ? two[0] / 2 : 1;
}

// A Reshape that may have put the numbers of a row below each other.
bool ends_in_reshape(const Graph& network, const std::string& output) {
  return std::any_of(network.nodes.begin(), network.nodes.end(), [&](const Node& node) {
    if (node.op != "Reshape" || node.outputs[0] != output || node.inputs.size() < 2) return false;
    const auto shape = network.initializers.find(node.inputs[1]);
    return shape != network.initializers.end() && shape->second.numel() > 0 &&
           shape->second.number(0) == -1;
  });
}

void part_rows(Graph& network, size_t i, int64_t count, const std::vector<int64_t>& shape) {
  TensorInfo& info = network.outputs[i];
  std::vector<int64_t> target = {-1, count};
  for (size_t axis = 1; axis < shape.size(); ++axis) {
    if (shape[axis] != 1) target.push_back(shape[axis]);
  }
  const std::string name = info.name + "/row_shape";
  network.initializers[name] = torch::tensor(target, torch::kLong);
  change_output(network, i, node_of("Reshape", {name}, info.name));
  info.known_rank = true;
  info.shape = target;
  info.shape[0] = kDynamic;
  info.dimension_names.assign(target.size(), "");
}

void turn_output(Graph& network, size_t i, size_t rank) {
  TensorInfo& info = network.outputs[i];
  Node node = node_of("Transpose", {}, info.name);
  node.attributes["perm"] = swapped_order(rank);
  change_output(network, i, std::move(node));
  if (info.known_rank && info.shape.size() == rank) swap_axes(info);
}

}  // namespace

Graph with_rows_first(const Graph& network) {
  Graph changed = network;
  bool moved = false, certain = true;
  for (size_t i = 0; i < network.inputs.size(); ++i) {
    const std::optional<bool> second = has_rows_second(network.inputs[i]);
    if (!second || in_subgraphs(network, network.inputs[i].name)) continue;
    move_input(changed, i);
    moved = true;
    certain = certain && *second;
  }
  const bool reshaped = std::any_of(network.outputs.begin(), network.outputs.end(),
                                    [&](auto& one) { return ends_in_reshape(network, one.name); });
  if (!moved && !reshaped) return network;
  const auto two = shapes_of_rows(changed, 2), three = shapes_of_rows(changed, 3);
  const bool known = two && three;
  bool any = false;
  for (size_t i = 0; known && i < changed.outputs.size(); ++i) {
    any = any || follows(*two, *three, i, 0) || stacked((*two)[i], (*three)[i]) > 1;
  }
  if (moved && !certain && !any) return network;
  for (size_t i = 0; i < changed.outputs.size(); ++i) {
    const TensorInfo info = changed.outputs[i];
    if (!known) {
      if (moved && has_rows_second(info).value_or(false))
        turn_output(changed, i, info.shape.size());
      continue;
    }
    if (follows(*two, *three, i, 0)) continue;
    const int64_t count = stacked((*two)[i], (*three)[i]);
    if (moved && follows(*two, *three, i, 1)) {
      turn_output(changed, i, (*two)[i].size());
    } else if (count > 1 && ends_in_reshape(network, info.name)) {
      part_rows(changed, i, count, (*two)[i]);
    }
  }
  return changed;
}

}  // namespace fcp
