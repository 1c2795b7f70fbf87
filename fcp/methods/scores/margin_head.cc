#include "fcp/methods/scores/margin_head.h"

#include <algorithm>
#include <string>

#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/nn/graph/cut.h"
#include "fcp/nn/runtime/bound_support.h"
#include "fcp/nn/runtime/element_types.h"

namespace fcp {
namespace {

TensorInfo info_of_rows(const std::string& name, const torch::Tensor& rows, int64_t batch) {
  TensorInfo info;
  info.name = name;
  info.type = element_type(rows.scalar_type());
  info.shape = rows.sizes().vec();
  info.shape[0] = batch;
  info.dimension_names.assign(info.shape.size(), "");
  return info;
}

// The tensor u: behind the last step that is not affine, if all paths pass there; else the logits.
std::string tail_input(const Network& network, const Graph& graph) {
  const std::vector<BoundPlan> plans = plan_bounds(network);
  std::string found = graph.inputs[0].name;
  for (size_t i = 0; i < plans.size(); ++i) {
    if (!plans[i].runs && plans[i].rule != BoundRule::kAffine) {
      found = network.steps()[i].node.outputs[0];
    }
  }
  const std::string& logits = graph.outputs[0].name;
  return found == logits || find_leak(graph, found) ? logits : found;
}

// The tensor's value for one row of features.
torch::Tensor value_of(const Network& network, const std::string& tensor,
                       const torch::Tensor& feature) {
  torch::Tensor value;
  network.run({feature}, [&](const Step& step, const Tensors&, const Tensors& outputs) {
    for (size_t i = 0; i < std::min(outputs.size(), step.node.outputs.size()); ++i) {
      if (step.node.outputs[i] == tensor) value = outputs[i];
    }
  });
  return value;
}

}  // namespace

AffineTail affine_tail(const LogitHead& head, const torch::Tensor& features) {
  const Network& network = *head.network;
  const Graph graph = network.graph();
  const std::string input = tail_input(network, graph);
  std::vector<int64_t> one_batch = features.sizes().vec();
  one_batch[0] = std::max<int64_t>(1, network.fixed_batch());
  const torch::Tensor example = features.narrow(0, 0, 1).expand(one_batch);
  AffineTail tail;
  if (input == graph.outputs[0].name) {  // nothing follows the logits
    tail.front = graph;
    tail.weight = torch::eye(head.classes, torch::kFloat);
    tail.bias = torch::zeros({head.classes}, torch::kFloat);
    return tail;
  }
  const torch::Tensor u = input == graph.inputs[0].name
                              ? example.to(network.device(), scalar_type(graph.inputs[0].type))
                              : value_of(network, input, example);
  const TensorInfo info = info_of_rows(input, u, network.fixed_batch());
  tail.front.inputs = graph.inputs;
  tail.front.outputs = {info};
  tail.front.opset = graph.opset;
  if (input != graph.inputs[0].name) tail.front = extract(graph, graph.inputs, {info});
  NetworkOptions options;
  options.device = network.device();
  const Network end(extract(graph, {info}, graph.outputs), options);
  std::vector<int64_t> shape = u.sizes().vec();
  shape[0] = head.classes;
  torch::AutoGradMode with_gradients(true);
  const torch::Tensor zeros = torch::zeros(shape, u.options()).requires_grad_();
  const torch::Tensor logits = end.run_rows({zeros})[0].reshape({head.classes, -1});  // all rows b
  const torch::Tensor weight = logits.requires_grad()
                                   ? torch::autograd::grad({logits.diagonal().sum()}, {zeros})[0]
                                   : torch::zeros_like(zeros);  // the feature does not matter
  tail.weight = weight.flatten(1).to(torch::kCPU, torch::kFloat).contiguous();
  tail.bias = logits.detach()[0].to(torch::kCPU, torch::kFloat).contiguous();
  return tail;
}

}  // namespace fcp
