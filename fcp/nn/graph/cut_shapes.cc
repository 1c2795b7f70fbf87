// What cutting learns by running the network on zeros, with libtorch.
#include <algorithm>
#include <set>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/graph/cut_parts.h"
#include "fcp/nn/runtime/element_types.h"
#include "fcp/nn/runtime/network.h"
#include "fcp/nn/runtime/tensor_memory.h"

namespace fcp {
namespace {

// The outputs of `names` for inputs of zeros: of 1 and of 2 rows, or of the rows the file fixes.
std::vector<Tensors> shapes_by_running(const Graph& graph, const std::vector<std::string>& names) {
  std::vector<TensorInfo> wanted;
  for (const std::string& name : names) wanted.push_back(info_of(graph, name));
  const torch::NoGradGuard no_gradients;
  const Network network(extract(graph, graph.inputs, wanted));
  std::vector<Tensors> results;
  for (const int64_t rows : {1, 2}) {
    Tensors inputs;
    for (const TensorInfo& info : graph.inputs) {
      std::vector<int64_t> shape = info.shape;
      if (network.fixed_batch() == kDynamic) shape[0] = rows;
      if (shape[0] == kDynamic) shape[0] = network.fixed_batch();
      inputs.push_back(declared_zeros(shape, info.type, info.name));
    }
    results.push_back(network.run(inputs));
  }
  return results;
}

// Nodes that make `output` = fixed + share · rows / base, where rows is the feature's first
// dimension: what a shape from before the cut is, said by the feature.
void say_by_rows(Graph& graph, const Node& old, const std::string& feature,
                 const torch::Tensor& once, const torch::Tensor& twice, int64_t base,
                 std::vector<Node>& nodes) {
  const std::string prefix = old.outputs[0] + "/by_rows_";
  const torch::Tensor grows = once != twice;
  if (!(twice == once * 2).logical_or(grows.logical_not()).all().item<bool>() || base < 1) {
    fail(describe(old), ": tells the head a shape that does not follow from the number of rows");
  }
  const auto constant = [&](const std::string& name, const torch::Tensor& value) {
    graph.initializers[prefix + name] = value;
    return prefix + name;
  };
  const auto add = [&](const std::string& op, std::vector<std::string> inputs, std::string output) {
    Node node;
    node.op = op;
    node.name = output;
    node.inputs = std::move(inputs);
    node.outputs = {output};
    nodes.push_back(node);
    return output;
  };
  const torch::Tensor first = torch::zeros(
      once.dim() == 0 ? std::vector<int64_t>{} : std::vector<int64_t>{1}, torch::kLong);
  const std::string shape = add("Shape", {feature}, prefix + "shape");
  const std::string rows = add("Gather", {shape, constant("first", first)}, prefix + "rows");
  const std::string share = constant("share", once.masked_fill(grows.logical_not(), 0));
  const std::string product = add("Mul", {rows, share}, prefix + "product");
  const std::string quotient =
      add("Div", {product, constant("base", torch::full_like(first, base))}, prefix + "quotient");
  add("Add", {quotient, constant("fixed", once.masked_fill(grows, 0))}, old.outputs[0]);
}

// The graph in which the shapes that the head needs from before the cut are constants, or follow
// from the feature's number of rows.
Graph with_shapes_of(const Graph& graph, const std::string& feature) {
  const std::vector<size_t> early = early_shapes(graph, feature);
  if (early.empty() || !knows_shapes(graph)) return graph;
  std::vector<std::string> names = {feature};
  for (const size_t i : early) names.push_back(graph.nodes[i].outputs[0]);
  const std::vector<Tensors> shapes = shapes_by_running(graph, names);
  const bool follows = shapes[1][0].dim() > 0 && shapes[1][0].size(0) == 2 * shapes[0][0].size(0);
  Graph changed = graph;
  changed.nodes.clear();
  size_t next = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (next >= early.size() || early[next] != i) {
      changed.nodes.push_back(graph.nodes[i]);
      continue;
    }
    ++next;
    const torch::Tensor &once = shapes[0][next], &twice = shapes[1][next];
    if (torch::equal(once, twice)) {
      changed.initializers[graph.nodes[i].outputs[0]] = once;
    } else {
      say_by_rows(changed, graph.nodes[i], feature, once, twice, follows ? shapes[0][0].size(0) : 0,
                  changed.nodes);
    }
  }
  return changed;
}

}  // namespace

CutGraph cut(const Graph& graph, const std::string& where) {
  return cut(graph, where, with_shapes_of);
}

void declare_feature(CutGraph& parts, const std::vector<torch::Tensor>& inputs) {
  torch::NoGradGuard no_grad;
  const Network backbone(parts.backbone);
  const torch::Tensor feature = backbone.run(inputs)[0];
  TensorInfo& info = parts.backbone.outputs[0];
  info.known_rank = true;
  info.type = element_type(feature.scalar_type());
  info.shape = feature.sizes().vec();
  info.dimension_names.assign(info.shape.size(), "");
  if (!info.shape.empty() && backbone.fixed_batch() == kDynamic) {
    info.shape[0] = kDynamic;
    info.dimension_names[0] = "batch";
  }
  parts.head.inputs[0] = info;
}

std::optional<ConstantTensor> value_by_shapes(const Graph& graph) {
  const std::string& name = graph.outputs[0].name;
  if (graph.inputs.empty()) return ConstantTensor(Network(graph).run({})[0]);
  if (flowing_tensors(graph).contains(name) || !knows_shapes(graph)) return std::nullopt;
  const std::vector<Tensors> found = shapes_by_running(graph, {name});
  if (!torch::equal(found[0][0], found[1][0])) return std::nullopt;
  return ConstantTensor(found[0][0]);
}

namespace {

// The cuts whose tensor for so many rows of zeros does not have them as its first axis and numbers
// behind it.
std::set<std::string> cuts_without_rows(const Graph& graph, const Network& network, int64_t rows,
                                        const std::set<std::string>& cuts) {
  std::set<std::string> without;
  const auto look = [&](const std::string& name, const torch::Tensor& value) {
    if (!value.defined() || !cuts.contains(name)) return;
    if (value.dim() < 2 || value.size(0) != rows) without.insert(name);
  };
  const Tensors inputs = zero_inputs(graph, rows);
  if (inputs.empty()) return without;
  for (size_t i = 0; i < inputs.size(); ++i) look(graph.inputs[i].name, inputs[i]);
  const torch::NoGradGuard no_gradients;
  network.run(inputs, [&](const Step& step, const Tensors&, const Tensors& results) {
    for (size_t i = 0; i < step.node.outputs.size() && i < results.size(); ++i) {
      look(step.node.outputs[i], results[i]);
    }
  });
  return without;
}

}  // namespace

std::vector<std::string> feature_cuts(const Graph& graph) {
  std::vector<std::string> cuts = valid_cuts(graph);
  const std::set<std::string> names(cuts.begin(), cuts.end());
  try {
    const Network network(graph, {.fold_constants = false, .fold_batch_norm = false});
    const int64_t fixed = network.fixed_batch();
    const std::vector<int64_t> tried =
        fixed == kDynamic ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{fixed};
    for (const int64_t rows : tried) {  // 1 alone may be the length of another axis
      const std::set<std::string> without = cuts_without_rows(graph, network, rows, names);
      std::erase_if(cuts, [&](const std::string& name) { return without.contains(name); });
    }
  } catch (const Error&) {  // zeros are not what it takes
  }
  return cuts;
}

}  // namespace fcp
