#include "fcp/training/export.h"

#include <string>
#include <utility>

#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/training/graph_parts.h"

namespace fcp {
namespace {

torch::Tensor constant_row(const std::vector<float>& values) {
  return torch::tensor(values, torch::kFloat).view({1, static_cast<int64_t>(values.size())});
}

// Adds `output` = op(value, constant) to the graph and moves `value` on to it.
void append_scaling(Graph& graph, std::string& value, const char* op, const std::string& constant,
                    torch::Tensor number, const std::string& output) {
  graph.initializers[constant] = std::move(number);
  graph.nodes.push_back({.name = concat(output, "/", op),
                         .op = op,
                         .domain = "",
                         .inputs = {value, constant},
                         .outputs = {output},
                         .attributes = {}});
  value = output;
}

void append_layer(Graph& graph, std::string& value, const DenseLayer& layer, size_t number,
                  const std::string& output) {
  const std::string name = concat("layer", number);
  graph.initializers[name + ".weight"] = layer.weight.clone();
  graph.initializers[name + ".bias"] = layer.bias.clone();
  graph.nodes.push_back({.name = name + "/Gemm",
                         .op = "Gemm",
                         .domain = "",
                         .inputs = {value, name + ".weight", name + ".bias"},
                         .outputs = {output},
                         .attributes = {{"transB", int64_t{1}}}});
  value = output;
}

void append_relu(Graph& graph, std::string& value, size_t number) {
  const std::string output = concat("hidden", number);
  graph.nodes.push_back({.name = output + "/Relu",
                         .op = "Relu",
                         .domain = "",
                         .inputs = {value},
                         .outputs = {output},
                         .attributes = {}});
  value = output;
}

}  // namespace

void append_halves(Graph& graph, const std::string& value, int64_t columns) {
  graph.initializers["halves"] = torch::tensor({columns / 2, columns / 2}, torch::kLong);
  graph.nodes.push_back({.name = "quantiles/Split",
                         .op = "Split",
                         .domain = "",
                         .inputs = {value, "halves"},
                         .outputs = {"low", "high"},
                         .attributes = {{"axis", int64_t{1}}}});
  graph.outputs = {batch_of("low", columns / 2), batch_of("high", columns / 2)};
}

std::string output_name(Loss loss) {
  if (loss == Loss::kMse) return "prediction";
  return loss == Loss::kQuantile ? "quantiles" : "logits";
}

Graph export_mlp(const Mlp& mlp, const NetworkScaling& scaling, Loss loss) {
  Graph graph;
  graph.name = "fcp_mlp";
  graph.inputs = {batch_of("input", mlp.options().inputs)};
  std::string value = "input";
  if (!scaling.empty()) {
    append_scaling(graph, value, "Sub", "mean", constant_row(scaling.mean), "centred");
    append_scaling(graph, value, "Div", "deviation", constant_row(scaling.deviation), "scaled");
  }
  const std::string output = output_name(loss);
  const bool scale_output = !scaling.empty() && loss != Loss::kCrossEntropy;
  const size_t layers = mlp.layers().size();
  for (size_t i = 1; i <= layers; ++i) {
    const bool last = i == layers;
    const std::string name = last && !scale_output ? output : concat("layer", i);
    append_layer(graph, value, mlp.layers()[i - 1], i, name);
    if (!last) append_relu(graph, value, i);
  }
  if (scale_output) {
    append_scaling(graph, value, "Mul", "target_scale", torch::full({1, 1}, scaling.target),
                   output);
  }
  const int64_t columns = mlp.options().outputs;
  graph.outputs = {batch_of(output, columns)};
  if (loss == Loss::kQuantile) append_halves(graph, value, columns);
  sort_and_check(graph);
  return graph;
}

}  // namespace fcp
