// Runs an exported graph node by node: fcp's own operators, and the few that only exported graphs
// have, each as its definition says.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/network/graph.h"
#include "fcp/network/op.h"

namespace fcp {

inline Tensors run_sorting_op(const std::string& op, const Tensors& in) {
  if (op == "Or") return {in[0].logical_or(in[1])};
  if (op == "CumSum") return {in[0].cumsum(in[1].item<int64_t>())};
  if (op == "GatherElements") return {in[0].gather(1, in[1])};
  if (op == "ScatterElements") return {in[0].scatter(1, in[1], in[2])};
  if (op != "TopK") return {};
  const auto [values, order] = torch::sort(in[0], /*stable=*/true, 1, /*descending=*/true);
  return {values, order};
}

// The outputs of the graph by name.
inline std::map<std::string, torch::Tensor> run_exported(const Graph& graph,
                                                         const torch::Tensor& x) {
  const torch::NoGradGuard no_gradients;
  std::map<std::string, torch::Tensor> values = graph.initializers;
  values[graph.inputs[0].name] = x;
  for (const Node& node : graph.nodes) {
    Tensors inputs;
    for (const std::string& name : node.inputs) {
      inputs.push_back(name.empty() ? torch::Tensor() : values.at(name));
    }
    Tensors outputs = run_sorting_op(node.op, inputs);
    if (outputs.empty()) outputs = make_op(node, graph.opset)->forward(inputs);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (!node.outputs[i].empty()) values[node.outputs[i]] = outputs.at(i);
    }
  }
  std::map<std::string, torch::Tensor> results;
  for (const TensorInfo& output : graph.outputs) results[output.name] = values.at(output.name);
  return results;
}

}  // namespace fcp
