#include "fcp/training/export.h"

#include <string>
#include <utility>

#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/training/tree_graph.h"

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

namespace {

// Layers of the chosen networks: weight [E, inputs, outputs], the input scales included.
std::vector<StackLayer> member_layers(const EnsembleFit& fit,
                                      const std::vector<int64_t>& networks) {
  const torch::Tensor chosen =
      fit.parameters.index_select(0, torch::tensor(networks, torch::kLong));
  const StackViews views = stack_views(chosen, fit.shape);
  std::vector<StackLayer> layers = views.layers;
  layers[0].weight = layers[0].weight * views.scale.unsqueeze(2);
  return layers;
}

void append_gemm(Graph& graph, const std::string& input, const std::string& name,
                 const torch::Tensor& weight, const torch::Tensor& bias,
                 const std::string& output) {
  graph.initializers[name + ".weight"] = weight.contiguous().clone();
  graph.initializers[name + ".bias"] = bias.contiguous().clone();
  append_node(graph, "Gemm", {input, name + ".weight", name + ".bias"}, output);
}

// All members read the same rows: their weights [F, E · width] side by side.
void append_first_layer(Graph& graph, const std::string& input, const StackLayer& layer,
                        const std::string& output) {
  const int64_t inputs = layer.weight.size(1);
  append_gemm(graph, input, "layer1", layer.weight.permute({1, 0, 2}).reshape({inputs, -1}),
              layer.bias.flatten(), output);
}

// Each member reads its own part.
void append_member_layer(Graph& graph, const std::string& input, const StackLayer& layer,
                         const std::string& name, const std::string& output) {
  const int64_t members = layer.weight.size(0);
  if (members == 1) {
    append_gemm(graph, input, name, layer.weight[0], layer.bias[0][0], output);
    return;
  }
  std::vector<std::string> parts, answers;
  for (int64_t e = 0; e < members; ++e) {
    parts.push_back(concat(name, ".part", e));
    answers.push_back(concat(name, ".member", e));
  }
  graph.initializers[name + ".widths"] = torch::full({members}, layer.weight.size(1), torch::kLong);
  graph.nodes.push_back({.name = name + "/Split",
                         .op = "Split",
                         .domain = "",
                         .inputs = {input, name + ".widths"},
                         .outputs = parts,
                         .attributes = {{"axis", int64_t{1}}}});
  for (size_t e = 0; e < parts.size(); ++e) {
    const int64_t member = static_cast<int64_t>(e);
    append_gemm(graph, parts[e], answers[e], layer.weight[member], layer.bias[member][0],
                answers[e]);
  }
  append_node(graph, "Concat", answers, output, {{"axis", int64_t{1}}});
}

// The mean of the members' answers.
AnswerLayer joint_answer(const EnsembleFit& fit, const std::vector<int64_t>& networks,
                         const OutputScaling& scaling, const TreeMembers& trees) {
  const double share = 1 / static_cast<double>(networks.size());
  std::vector<torch::Tensor> weights;
  torch::Tensor bias;
  for (const int64_t network : networks) {
    const AnswerLayer own = answer_layer(fit, network, scaling, trees);
    weights.push_back(own.weight * share);
    const torch::Tensor part = own.bias.to(torch::kDouble) * share;
    bias = bias.defined() ? bias + part : part;
  }
  return {torch::cat(weights), bias.to(torch::kFloat)};
}

std::string append_hidden(Graph& graph, const std::vector<StackLayer>& layers,
                          const std::string& encoded, const std::string& last) {
  std::string value = encoded;
  for (size_t i = 0; i + 1 < layers.size(); ++i) {
    const std::string name = concat("layer", i + 1);
    if (i == 0) {
      append_first_layer(graph, value, layers[i], name);
    } else {
      append_member_layer(graph, value, layers[i], name, name);
    }
    value = i + 2 == layers.size() ? last : concat("hidden", i + 1);
    append_node(graph, "Relu", {name}, value);
  }
  return value;
}

void append_mapping_back(Graph& graph, const OutputScaling& scaling, const std::string& value,
                         const std::string& output) {
  graph.initializers["log_least"] = torch::full({1}, scaling.least, torch::kFloat);
  graph.initializers["log_most"] = torch::full({1}, scaling.most, torch::kFloat);
  append_node(graph, "Max", {value, "log_least"}, "log_raised");
  append_node(graph, "Min", {"log_raised", "log_most"}, "log_kept");
  if (scaling.shift > 0) {
    graph.initializers["log_shift"] = torch::full({1}, scaling.shift, torch::kFloat);
    append_node(graph, "Exp", {"log_kept"}, "shifted_prediction");
    append_node(graph, "Sub", {"shifted_prediction", "log_shift"}, output);
  } else {
    append_node(graph, "Exp", {"log_kept"}, output);
  }
}

// What each network answers in the scale of learning, side by side: [N, E · outputs].
std::string append_network_answers(Graph& graph, const std::vector<StackLayer>& layers,
                                   const std::vector<int64_t>& columns, const std::string& hidden) {
  const torch::Tensor chosen = torch::tensor(columns, torch::kLong);
  std::vector<torch::Tensor> weights, biases;
  for (int64_t e = 0; e < layers.back().weight.size(0); ++e) {
    weights.push_back(layers.back().weight[e].index_select(1, chosen));
    biases.push_back(layers.back().bias[e][0].index_select(0, chosen));
  }
  append_gemm(graph, hidden, "network_answers", torch::block_diag(weights), torch::cat(biases),
              "network_answers");
  return "network_answers";
}

// The tensor `features` of networks and trees.
void append_mixed_features(Graph& graph, const std::vector<StackLayer>& layers,
                           const InputEncoding& encoding, const OutputScaling& scaling,
                           const TreeMembers& trees, const std::string& encoded) {
  const auto members = layers[0].weight.size(0);
  const std::string filled = encoding.fill ? "filled" : "input";
  std::vector<FeatureParts> parts;
  if (!trees.without_networks) {
    const std::string hidden =
        append_hidden(graph, layers, encoded, concat("hidden", layers.size() - 1));
    parts.push_back({hidden, layers.back().weight.size(1)});
  }
  append_trees(graph, trees, members, filled, encoding.dates.empty() ? "" : kCalendar, parts);
  if (!trees.spreads.trees.empty()) {
    const std::string networks =
        append_network_answers(graph, layers, scaling.columns, parts[0].tensor);
    append_node(graph, "Sub", {networks, kTreeAnswers}, "tree_difference");
    append_node(graph, "Abs", {"tree_difference"}, "tree_disagreement");
    parts.push_back({"tree_disagreement", static_cast<int64_t>(scaling.columns.size())});
  }
  append_blocks(graph, parts, members, "features");
}

}  // namespace

torch::Tensor mapped_back(const OutputScaling& scaling, const torch::Tensor& answers) {
  if (!scaling.log) return answers;
  const torch::Tensor values =
      answers.clamp(static_cast<float>(scaling.least), static_cast<float>(scaling.most)).exp();
  return scaling.shift > 0 ? values - static_cast<float>(scaling.shift) : values;
}

AnswerLayer answer_layer(const EnsembleFit& fit, int64_t network, const OutputScaling& scaling,
                         const TreeMembers& trees) {
  const StackLayer last = member_layers(fit, {network}).back();
  const torch::Tensor columns = torch::tensor(scaling.columns, torch::kLong);
  const torch::Tensor scale = torch::tensor(scaling.scale, torch::kDouble);
  const torch::Tensor offset = torch::tensor(scaling.offset, torch::kDouble);
  const auto outputs = columns.numel();
  const torch::Tensor share =
      trees.used() ? torch::tensor(trees.share, torch::kDouble) : torch::zeros({1}, torch::kDouble);
  const auto chosen = [&](const torch::Tensor& values) {
    return values.index_select(-1, columns).to(torch::kDouble) * (scale * (1 - share));
  };
  std::vector<torch::Tensor> weights;
  if (!trees.without_networks) weights.push_back(chosen(last.weight[0]));
  if (trees.used()) {
    weights.push_back(tree_answer_matrix(trees.answers.outputs, outputs).to(torch::kDouble) *
                      (scale * share));
    if (!trees.spreads.trees.empty()) {
      weights.push_back(torch::zeros({trees.spreads.outputs + outputs, outputs}, torch::kDouble));
    }
  }
  return {torch::cat(weights).to(torch::kFloat),
          (chosen(last.bias[0][0]) + offset).to(torch::kFloat)};
}

Graph export_ensemble(const EnsembleFit& fit, const std::vector<int64_t>& networks,
                      const InputEncoding& encoding, const OutputScaling& scaling, Loss loss,
                      const TreeMembers& trees) {
  Graph graph;
  graph.name = "fcp_ensemble";
  graph.inputs = {batch_of("input", encoding.columns())};
  const std::string encoded = append_encoding(graph, encoding, "input");
  const std::vector<StackLayer> layers = member_layers(fit, networks);
  if (trees.used()) {
    append_mixed_features(graph, layers, encoding, scaling, trees, encoded);
  } else {
    append_hidden(graph, layers, encoded, "features");
  }
  const AnswerLayer answer = joint_answer(fit, networks, scaling, trees);
  const std::string output = output_name(loss);
  append_gemm(graph, "features", "answer", answer.weight, answer.bias,
              scaling.log ? "log_prediction" : output);
  if (scaling.log) append_mapping_back(graph, scaling, "log_prediction", output);
  const int64_t columns = answer.weight.size(1);
  graph.outputs = {batch_of(output, columns)};
  if (trees.without_networks) {
    const std::vector<TensorInfo> wanted = graph.outputs;
    graph = extract(graph, graph.inputs, wanted);
  }
  if (loss == Loss::kQuantile) append_halves(graph, output, columns);
  sort_and_check(graph);
  return graph;
}

}  // namespace fcp
