#include "fcp/network/inspect.h"

#include <algorithm>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/network/bound_support.h"
#include "fcp/network/cut.h"
#include "fcp/network/half.h"
#include "fcp/network/network.h"
#include "fcp/network/rows_first.h"
#include "fcp/network/simplify.h"
#include "fcp/network/tensor_memory.h"

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
  return declared_zeros(shape, info.type, info.name);
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

// The bounds of heads that have intervals. Where rows leave the first axis, linear bounds are those
// of the head with its rows first; of a head without that form, and of all that contain it, ibp
// remains.
void see_moved_rows(const Graph& graph, std::vector<CutReport>& cuts) {
  bool known = true;
  for (size_t i = cuts.size(); i-- > 0;) {
    CutReport& report = cuts[i];
    if (report.bounds != support_name(BoundSupport::kInterval)) continue;
    if (!known) {
      report.bounds = "ibp";
      continue;
    }
    const Network head(cut(graph, report.tensor).head);
    if (!moves_rows(head)) continue;
    try {
      const TensorInfo& feature = head.inputs()[0];
      const torch::Tensor row = declared_zeros(report.shape, feature.type, feature.name);
      BoundSupport weakest = BoundSupport::kLinear;
      for (const BoundSupport support : bound_support(Network(rows_first(head, row)))) {
        weakest = std::min(weakest, support);
      }
      report.bounds = support_name(weakest);
    } catch (const Error&) {
      known = false;
      report.bounds = "ibp";
    }
  }
}

// The head of a cut is what follows it, so one walk from the end counts layers and finds the
// weakest bounds for all cuts.
std::vector<CutReport> report_cuts(const Graph& graph, const Network& network,
                                   const std::vector<BoundSupport>& support,
                                   const std::map<std::string, std::vector<int64_t>>& shapes) {
  const std::vector<bool> layers = layer_marks(graph);
  const size_t count = network.steps().size();
  std::vector<size_t> layers_from(count + 1, 0);  // of the steps from here on
  std::vector<BoundSupport> weakest_from(count + 1, BoundSupport::kLinear);
  std::map<std::string, size_t> made_by;
  for (size_t i = count; i-- > 0;) {
    layers_from[i] = layers_from[i + 1] + (layers[i] ? 1 : 0);
    weakest_from[i] = std::min(weakest_from[i + 1], support[i]);
    for (const std::string& output : network.steps()[i].node.outputs) made_by[output] = i;
  }
  std::vector<CutReport> cuts;
  for (const std::string& tensor : feature_cuts(graph)) {
    const auto maker = made_by.find(tensor);
    const size_t head = maker == made_by.end() ? 0 : maker->second + 1;
    CutReport report;
    report.tensor = tensor;
    const auto shape = shapes.find(tensor);
    if (shape != shapes.end()) report.shape = shape->second;
    if (shape != shapes.end() && report.shape.size() < 2) continue;  // a shape that was given
    report.size = 1;
    for (size_t i = 1; i < report.shape.size(); ++i) report.size *= report.shape[i];
    report.head_layers = layers_from[head];
    report.bounds = support_name(weakest_from[head]);
    cuts.push_back(std::move(report));
  }
  see_moved_rows(graph, cuts);
  return cuts;
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
  widen_half(folded);
  drop_unneeded(folded);
  check_supported(folded);
  fold_constants(folded);
  drop_unneeded(folded);

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
  report.cuts = report_cuts(folded, network, support, found_shapes);
  return report;
}

}  // namespace fcp
