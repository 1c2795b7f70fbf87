#include "fcp/nn/graph/cut.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/nn/graph/cut_parts.h"
#include "fcp/nn/graph/tensor_types.h"
#include "fcp/nn/ops/op_traits.h"

namespace fcp {
namespace {

std::map<std::string, size_t> nodes_by_output(const Graph& graph) {
  std::map<std::string, size_t> made_by;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const std::string& output : graph.nodes[i].outputs) {
      if (!output.empty()) made_by[output] = i;
    }
  }
  return made_by;
}

bool is_layer(const Node& node, const std::set<std::string>& constants) {
  return has_traits(node, kLayer) && node.inputs.size() >= 2 &&
         (constants.contains(node.inputs[1]) || constants.contains(node.inputs[0]));
}

// The tensors that do not depend on any input.
std::set<std::string> constant_tensors(const Graph& graph) {
  std::set<std::string> constants;
  for (const auto& [name, tensor] : graph.initializers) constants.insert(name);
  for (const Node& node : graph.nodes) {
    const bool constant =
        std::all_of(node.inputs.begin(), node.inputs.end(),
                    [&](const auto& name) { return name.empty() || constants.contains(name); });
    if (constant) constants.insert(node.outputs.begin(), node.outputs.end());
  }
  return constants;
}

std::vector<size_t> layer_nodes(const Graph& graph) {
  const std::set<std::string> constants = constant_tensors(graph);
  std::vector<size_t> layers;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (is_layer(graph.nodes[i], constants)) layers.push_back(i);
  }
  return layers;
}

// The tensor that a layer reads (not its weight).
std::string layer_input(const Graph& graph, size_t layer) {
  const std::set<std::string> constants = constant_tensors(graph);
  const Node& node = graph.nodes[layer];
  return constants.contains(node.inputs[0]) ? node.inputs[1] : node.inputs[0];
}

std::optional<int64_t> parse_integer(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool tensor_exists(const Graph& graph, const std::string& name) {
  const auto is_it = [&](const TensorInfo& info) { return info.name == name; };
  if (std::any_of(graph.inputs.begin(), graph.inputs.end(), is_it)) return true;
  return nodes_by_output(graph).contains(name);
}

}  // namespace

Needed needed_for(const Graph& graph, const std::vector<std::string>& outputs,
                  const std::set<std::string>& stops) {
  const std::map<std::string, size_t> made_by = nodes_by_output(graph);
  Needed needed{std::vector<bool>(graph.nodes.size(), false), {}};
  std::vector<std::string> open = outputs;
  while (!open.empty()) {
    const std::string name = open.back();
    open.pop_back();
    if (name.empty() || !needed.tensors.insert(name).second || stops.contains(name)) continue;
    const auto producer = made_by.find(name);
    if (producer == made_by.end() || needed.nodes[producer->second]) continue;
    needed.nodes[producer->second] = true;
    const Node& node = graph.nodes[producer->second];
    open.insert(open.end(), node.inputs.begin(), node.inputs.end());
  }
  return needed;
}

std::vector<std::string> names_of(const std::vector<TensorInfo>& infos) {
  std::vector<std::string> names;
  for (const TensorInfo& info : infos) names.push_back(info.name);
  return names;
}

bool knows_shapes(const Graph& graph) {
  return std::all_of(graph.inputs.begin(), graph.inputs.end(), [](const TensorInfo& info) {
    return info.known_rank && !info.shape.empty() &&
           std::find(info.shape.begin() + 1, info.shape.end(), kDynamic) == info.shape.end();
  });
}

TensorInfo info_of(const Graph& graph, const std::string& name) {
  for (const auto* list : {&graph.inputs, &graph.outputs}) {
    for (const TensorInfo& info : *list) {
      if (info.name == name) return info;
    }
  }
  TensorInfo info;
  info.name = name;
  info.known_rank = false;
  info.type = tensor_types(graph).at(name);
  return info;
}

std::set<std::string> flowing_tensors(const Graph& graph) {
  const bool by_value = knows_shapes(graph);
  std::set<std::string> flowing;
  for (const TensorInfo& input : graph.inputs) flowing.insert(input.name);
  for (const Node& node : graph.nodes) {
    if (by_value && has_traits(node, kShapeOnly)) continue;
    const bool flows = std::any_of(node.inputs.begin(), node.inputs.end(),
                                   [&](const auto& name) { return flowing.contains(name); });
    if (flows) flowing.insert(node.outputs.begin(), node.outputs.end());
  }
  flowing.erase("");
  return flowing;
}

Graph extract(const Graph& graph, const std::vector<TensorInfo>& inputs,
              const std::vector<TensorInfo>& outputs) {
  const std::vector<std::string> given = names_of(inputs);
  const std::set<std::string> stops(given.begin(), given.end());
  const Needed needed = needed_for(graph, names_of(outputs), stops);
  for (const TensorInfo& input : graph.inputs) {
    if (needed.tensors.contains(input.name) && !stops.contains(input.name)) {
      fail("computing '", outputs.front().name, "' needs the input '", input.name, "' as well");
    }
  }
  Graph part;
  part.name = graph.name;
  part.opset = graph.opset;
  part.domains = graph.domains;
  part.ir_version = graph.ir_version;
  part.inputs = inputs;
  part.outputs = outputs;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (needed.nodes[i]) part.nodes.push_back(graph.nodes[i]);
  }
  for (const auto& [name, tensor] : graph.initializers) {
    if (needed.tensors.contains(name)) part.initializers.emplace(name, tensor);
  }
  return part;
}

std::vector<bool> layer_marks(const Graph& graph) {
  std::vector<bool> marks(graph.nodes.size(), false);
  for (const size_t layer : layer_nodes(graph)) marks[layer] = true;
  return marks;
}

Graph select_outputs(const Graph& graph, const std::vector<std::string>& names) {
  std::vector<TensorInfo> outputs;
  for (const std::string& name : names) {
    const auto found = std::find_if(graph.outputs.begin(), graph.outputs.end(),
                                    [&](const TensorInfo& info) { return info.name == name; });
    if (found == graph.outputs.end()) fail("the network has no output '", name, "'");
    outputs.push_back(*found);
  }
  std::vector<TensorInfo> inputs;
  const std::set<std::string> needed = needed_for(graph, names, {}).tensors;
  for (const TensorInfo& input : graph.inputs) {
    if (needed.contains(input.name)) inputs.push_back(input);
  }
  Graph part = extract(graph, inputs, outputs);
  part.metadata = graph.metadata;
  return part;
}

size_t count_layers(const Graph& graph) { return layer_nodes(graph).size(); }

namespace {

// The layers whose input separates the graph; all of them where none does.
std::vector<size_t> layers_behind_cuts(const Graph& graph) {
  const std::vector<std::string> cuts = valid_cuts(graph);
  const std::set<std::string> separating(cuts.begin(), cuts.end());
  const std::vector<size_t> all = layer_nodes(graph);
  std::vector<size_t> some;
  for (const size_t layer : all) {
    if (separating.contains(layer_input(graph, layer))) some.push_back(layer);
  }
  return some.empty() ? all : some;
}

}  // namespace

std::string resolve_cut(const Graph& graph, const std::string& where) {
  if (tensor_exists(graph, where)) return where;
  for (const Node& node : graph.nodes) {
    if (!node.name.empty() && node.name == where) return node.outputs.front();
  }
  const std::optional<int64_t> number = parse_integer(where);
  if (!number) {
    fail("cut '", where,
         "': the network has no tensor or node of that name; `fcp inspect` lists them");
  }
  const std::vector<size_t> layers = layers_behind_cuts(graph);
  const auto count = static_cast<int64_t>(layers.size());
  // Both ways of counting name the first layer that belongs to the head.
  const int64_t first = *number < 0 ? count + *number : *number;
  if (first < 0 || first >= count) {
    const bool all = layers.size() == count_layers(graph);
    fail("cut '", where, "': the network has ", count, " layers",
         all ? "" : " before which it can be cut", ", so a cut is a number from ", -count, " to ",
         count - 1);
  }
  return layer_input(graph, layers[static_cast<size_t>(first)]);
}

std::optional<std::string> find_leak(const Graph& graph, const std::string& tensor) {
  const std::set<std::string> flowing = flowing_tensors(graph);
  const std::map<std::string, size_t> made_by = nodes_by_output(graph);
  std::set<std::string> upstream = needed_for(graph, {tensor}, {}).tensors;
  upstream.erase(tensor);
  // Back from the outputs along what flows, not through the cut.
  std::set<std::string> reached;
  std::vector<std::string> open = names_of(graph.outputs);
  while (!open.empty()) {
    const std::string name = open.back();
    open.pop_back();
    if (name == tensor || !flowing.contains(name) || !reached.insert(name).second) continue;
    const auto producer = made_by.find(name);
    if (producer == made_by.end()) continue;
    const Node& node = graph.nodes[producer->second];
    open.insert(open.end(), node.inputs.begin(), node.inputs.end());
  }
  for (const TensorInfo& input : graph.inputs) {
    if (!reached.contains(input.name)) continue;
    // Some path avoids the cut. Name the last tensor on it that the backbone makes or is given.
    std::string leak = input.name;
    for (const Node& node : graph.nodes) {
      for (const std::string& output : node.outputs) {
        if (upstream.contains(output) && reached.contains(output)) leak = output;
      }
    }
    return leak;
  }
  return std::nullopt;
}

std::vector<size_t> early_shapes(const Graph& graph, const std::string& feature) {
  const Needed head = needed_for(graph, names_of(graph.outputs), {feature});
  std::vector<size_t> nodes;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (!head.nodes[i] || !has_traits(node, kShapeOnly) || node.inputs[0] == feature) continue;
    const std::set<std::string> from = needed_for(graph, {node.inputs[0]}, {feature}).tensors;
    const bool early = std::any_of(graph.inputs.begin(), graph.inputs.end(), [&](const auto& info) {
      return info.name != feature && from.contains(info.name);
    });
    if (early) nodes.push_back(i);
  }
  return nodes;
}

CutGraph cut(const Graph& graph, const std::string& where, const HeadShapes& shapes) {
  CutGraph parts;
  parts.feature = resolve_cut(graph, where);
  for (const TensorInfo& output : graph.outputs) {
    if (output.name == parts.feature) {
      fail("cut at '", parts.feature, "': it is an output, which leaves no head");
    }
  }
  if (const std::optional<std::string> leak = find_leak(graph, parts.feature)) {
    fail("cut at '", parts.feature, "': the outputs can be reached past it through '", *leak,
         "'; `fcp inspect` lists the valid cuts");
  }
  const TensorInfo feature = info_of(graph, parts.feature);
  if (!needed_for(graph, names_of(graph.outputs), {}).tensors.contains(parts.feature)) {
    fail("cut at '", parts.feature, "': no output depends on it");
  }
  parts.backbone = extract(graph, graph.inputs, {feature});
  parts.head = extract(shapes(graph, parts.feature), {feature}, graph.outputs);
  return parts;
}

// In an order in which every node follows what it needs, a tensor separates the graph exactly when
// it is the only one that is alive after the node that makes it: made already, and read later or
// an output. One sweep finds them all.
std::vector<std::string> valid_cuts(const Graph& graph) {
  const std::set<std::string> flowing = flowing_tensors(graph);
  const std::vector<std::string> outputs = names_of(graph.outputs);
  const std::vector<bool> needed = needed_for(graph, outputs, {}).nodes;
  const auto flows = [&](const Node& node) {
    return std::any_of(node.outputs.begin(), node.outputs.end(),
                       [&](const auto& name) { return flowing.contains(name); });
  };
  std::map<std::string, size_t> last;  // the last node that reads a tensor
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!needed[i] || !flows(graph.nodes[i])) continue;
    for (const std::string& input : graph.nodes[i].inputs) {
      if (flowing.contains(input)) last[input] = i;
    }
  }
  const std::set<std::string> ends(outputs.begin(), outputs.end());
  for (const std::string& output : outputs) last[output] = graph.nodes.size();

  const std::map<std::string, ElementType> types = tensor_types(graph);
  const auto is_real = [&](const std::string& tensor) {
    const auto type = types.find(tensor);
    return type == types.end() || type->second == ElementType::kUndefined ||
           is_floating(type->second);
  };
  std::vector<std::string> cuts;
  std::set<std::string> alive;
  const auto take_cut = [&] {
    if (alive.size() != 1 || ends.contains(*alive.begin())) return;
    if (is_real(*alive.begin())) cuts.push_back(*alive.begin());
  };
  for (const TensorInfo& input : graph.inputs) {
    if (last.contains(input.name)) alive.insert(input.name);
  }
  take_cut();
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (!needed[i] || !flows(node)) continue;
    for (const std::string& input : node.inputs) {
      const auto found = last.find(input);
      if (found != last.end() && found->second == i) alive.erase(input);
    }
    for (const std::string& output : node.outputs) {
      if (flowing.contains(output) && last.contains(output)) alive.insert(output);
    }
    take_cut();
  }
  return cuts;
}

Graph part_between(const Graph& graph, const std::string& from, const std::string& to) {
  const auto tensor = [&](const std::string& where) {
    TensorInfo info;
    info.name = resolve_cut(graph, where);
    info.known_rank = false;
    return std::vector<TensorInfo>{info};
  };
  return extract(graph, from.empty() ? graph.inputs : tensor(from),
                 to.empty() ? graph.outputs : tensor(to));
}

}  // namespace fcp
