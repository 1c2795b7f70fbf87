#include "fcp/network/inspect.h"

#include <algorithm>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/network/bound_support.h"
#include "fcp/network/cut.h"
#include "fcp/network/network.h"
#include "fcp/network/simplify.h"

namespace fcp {
namespace {

torch::Tensor example_input(const TensorInfo& info,
                            const std::map<std::string, std::vector<int64_t>>& shapes) {
  const auto given = shapes.find(info.name);
  if (given == shapes.end() && !info.known_rank) {
    fail("input '", info.name, "': the file does not say its shape; give it, as in --shape ",
         info.name, "=1,3,224,224");
  }
  std::vector<int64_t> shape = given == shapes.end() ? info.shape : given->second;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != kDynamic) continue;
    if (i > 0) {
      fail("input '", info.name, "': dimension ", i,
           " is not fixed in the file; give the shape, as in --shape ", info.name, "=1,3,224,224");
    }
    shape[i] = 1;
  }
  return torch::zeros(shape, info.type);
}

int64_t parameters_of(const Step& step, const Tensors& constants) {
  int64_t count = 0;
  for (const int slot : step.inputs) {
    if (slot < 0) continue;
    const torch::Tensor& tensor = constants[static_cast<size_t>(slot)];
    if (tensor.defined() && tensor.is_floating_point()) count += tensor.numel();
  }
  return count;
}

}  // namespace

NetworkReport inspect(const Graph& graph,
                      const std::map<std::string, std::vector<int64_t>>& shapes) {
  torch::NoGradGuard no_grad;
  for (const auto& entry : shapes) {
    const std::string& name = entry.first;  // clang 14 lets no lambda capture a structured binding
    const bool known = std::any_of(graph.inputs.begin(), graph.inputs.end(),
                                   [&](const TensorInfo& info) { return info.name == name; });
    if (!known) fail("the network has no input '", name, "'");
  }
  Graph folded = graph;
  fold_constants(folded);

  NetworkReport report;
  report.opset = graph.opset;
  report.layers = count_layers(folded);
  report.inputs = graph.inputs;
  report.outputs = graph.outputs;
  Tensors inputs;
  std::map<std::string, std::vector<int64_t>> found_shapes;
  for (const TensorInfo& info : graph.inputs) {
    inputs.push_back(example_input(info, shapes));
    found_shapes[info.name] = inputs.back().sizes().vec();
  }
  const Network network(folded, {.fold_constants = false, .fold_batch_norm = false});
  const std::vector<BoundSupport> support = bound_support(network);
  network.run(inputs, [&](const Step& step, const Tensors& arguments, const Tensors& results) {
    NodeReport node;
    node.op = step.node.op;
    node.output = step.node.outputs.empty() ? "" : step.node.outputs[0];
    node.name = step.node.name.empty() ? node.output : step.node.name;
    node.shape = results[0].sizes().vec();
    node.parameters = parameters_of(step, network.constants());
    node.flops = step.op->flops(arguments, results);
    node.gradient = step.op->differentiable();
    node.bounds = support_name(support[report.nodes.size()]);
    report.flops += node.flops;
    for (size_t i = 0; i < step.node.outputs.size() && i < results.size(); ++i) {
      if (results[i].defined()) found_shapes[step.node.outputs[i]] = results[i].sizes().vec();
    }
    report.nodes.push_back(std::move(node));
  });
  for (const auto& [name, tensor] : folded.initializers) {
    if (tensor.is_floating_point()) report.parameters += tensor.numel();
  }
  for (const std::string& tensor : valid_cuts(folded)) {
    CutReport cut_report;
    cut_report.tensor = tensor;
    cut_report.shape = found_shapes[tensor];
    cut_report.size = 1;
    for (size_t i = 1; i < cut_report.shape.size(); ++i) cut_report.size *= cut_report.shape[i];
    const Graph head = cut(folded, tensor).head;
    cut_report.head_layers = count_layers(head);
    const std::vector<BoundSupport> head_support =
        bound_support(Network(head, {.fold_constants = false, .fold_batch_norm = false}));
    cut_report.bounds = support_name(*std::min_element(head_support.begin(), head_support.end()));
    report.cuts.push_back(std::move(cut_report));
  }
  return report;
}

}  // namespace fcp
