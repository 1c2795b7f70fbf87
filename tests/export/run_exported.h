// Runs an exported graph node by node: fcp's own operators, and the few that only exported graphs
// have, each as its definition says.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <variant>

#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/nn/graph/graph.h"
#include "fcp/nn/graph/half.h"
#include "fcp/nn/ops/op.h"

namespace fcp {

// Of each column, the sum of all after it.
inline torch::Tensor sum_after(const torch::Tensor& in) {
  torch::Tensor sums = torch::zeros_like(in);
  for (int64_t column = in.size(1) - 2; column >= 0; --column) {
    sums.select(1, column).copy_(sums.select(1, column + 1) + in.select(1, column + 1));
  }
  return sums;
}

inline Tensors run_sorting_op(const Node& node, const Tensors& in) {
  const std::string& op = node.op;
  if (op == "IsNaN") return {in[0].isnan()};
  if (op == "Or") return {in[0].logical_or(in[1])};
  if (op == "CumSum") {
    const bool after = std::get<int64_t>(node.attributes.at("exclusive")) == 1 &&
                       std::get<int64_t>(node.attributes.at("reverse")) == 1 &&
                       in[1].item<int64_t>() == 1;
    return {after ? sum_after(in[0]) : torch::Tensor()};
  }
  if (op == "GatherElements") return {in[0].gather(1, in[1])};
  if (op == "ScatterElements") return {in[0].scatter(1, in[1], in[2])};
  if (op != "TopK") return {};
  const auto [values, order] = torch::sort(in[0], /*stable=*/true, -1, /*descending=*/true);
  return {values, order};
}

// The outputs of the graph by name.
inline std::map<std::string, torch::Tensor> run_exported(const Graph& graph,
                                                         const torch::Tensor& x) {
  const torch::NoGradGuard no_gradients;
  std::map<std::string, torch::Tensor> values(graph.initializers.begin(), graph.initializers.end());
  values[graph.inputs[0].name] = x;
  for (const Node& node : graph.nodes) {
    Tensors inputs;
    for (const std::string& name : node.inputs) {
      inputs.push_back(name.empty() ? torch::Tensor() : values.at(name));
    }
    Tensors outputs = run_sorting_op(node, inputs);
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
