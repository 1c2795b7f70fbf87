#include "fcp/network/cut.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/network/network.h"

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

// What computing `outputs` takes when the tensors `stops` are given.
struct Needed {
  std::vector<bool> nodes;
  std::set<std::string> tensors;  // inputs, initializers and everything in between
};

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

bool is_layer(const Node& node, const std::set<std::string>& constants) {
  const bool multiplies =
      node.op == "Gemm" || node.op == "MatMul" || node.op == "Conv" || node.op == "ConvTranspose";
  return multiplies && node.inputs.size() >= 2 &&
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

TensorInfo info_of(const Graph& graph, const std::string& name) {
  for (const auto* list : {&graph.inputs, &graph.outputs}) {
    for (const TensorInfo& info : *list) {
      if (info.name == name) return info;
    }
  }
  TensorInfo info;
  info.name = name;
  info.known_rank = false;
  return info;
}

}  // namespace

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

size_t count_layers(const Graph& graph) { return layer_nodes(graph).size(); }

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
  const std::vector<size_t> layers = layer_nodes(graph);
  const auto count = static_cast<int64_t>(layers.size());
  // Both ways of counting name the first layer that belongs to the head.
  const int64_t first = *number < 0 ? count + *number : *number;
  if (first < 0 || first >= count) {
    fail("cut '", where, "': the network has ", count, " layers, so a cut is a number from ",
         -count, " to ", count - 1);
  }
  return layer_input(graph, layers[static_cast<size_t>(first)]);
}

std::optional<std::string> find_leak(const Graph& graph, const std::string& tensor) {
  const std::vector<std::string> outputs = names_of(graph.outputs);
  const Needed whole = needed_for(graph, outputs, {tensor});
  std::set<std::string> upstream = needed_for(graph, {tensor}, {}).tensors;
  upstream.erase(tensor);
  const std::set<std::string> constants = constant_tensors(graph);
  for (const TensorInfo& input : graph.inputs) {
    if (input.name == tensor || !whole.tensors.contains(input.name)) continue;
    // Some path avoids the cut. Name the last tensor on it that the backbone makes or is given.
    std::string leak = input.name;
    for (const Node& node : graph.nodes) {
      for (const std::string& output : node.outputs) {
        if (upstream.contains(output) && whole.tensors.contains(output) &&
            !constants.contains(output)) {
          leak = output;
        }
      }
    }
    return leak;
  }
  return std::nullopt;
}

CutGraph cut(const Graph& graph, const std::string& where) {
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
  parts.head = extract(graph, {feature}, graph.outputs);
  return parts;
}

void declare_feature(CutGraph& parts, const std::vector<torch::Tensor>& inputs) {
  torch::NoGradGuard no_grad;
  const Network backbone(parts.backbone);
  const torch::Tensor feature = backbone.run(inputs)[0];
  TensorInfo& info = parts.backbone.outputs[0];
  info.known_rank = true;
  info.type = feature.scalar_type();
  info.shape = feature.sizes().vec();
  info.dimension_names.assign(info.shape.size(), "");
  if (!info.shape.empty() && backbone.fixed_batch() == kDynamic) {
    info.shape[0] = kDynamic;
    info.dimension_names[0] = "batch";
  }
  parts.head.inputs[0] = info;
}

std::vector<std::string> valid_cuts(const Graph& graph) {
  const std::set<std::string> constants = constant_tensors(graph);
  const std::vector<std::string> outputs = names_of(graph.outputs);
  const Needed needed = needed_for(graph, outputs, {});
  std::vector<std::string> candidates = names_of(graph.inputs);
  for (const Node& node : graph.nodes) {
    for (const std::string& output : node.outputs) {
      if (!output.empty() && !constants.contains(output)) candidates.push_back(output);
    }
  }
  std::vector<std::string> cuts;
  for (const std::string& name : candidates) {
    const bool is_output = std::find(outputs.begin(), outputs.end(), name) != outputs.end();
    if (needed.tensors.contains(name) && !is_output && !find_leak(graph, name)) {
      cuts.push_back(name);
    }
  }
  return cuts;
}

}  // namespace fcp
