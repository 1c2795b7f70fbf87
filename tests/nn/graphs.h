// Small graphs for tests.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/nn/graph/graph.h"

#include "tests/nn/nodes.h"

namespace fcp {

// A perceptron x → h1 → … → y with ReLU between its layers; weights by libtorch's generator.
inline Graph make_mlp(const std::vector<int64_t>& widths) {
  Graph graph;
  graph.name = "mlp";
  graph.inputs = {make_info("x", {kDynamic, widths.front()})};
  graph.outputs = {make_info("y", {kDynamic, widths.back()})};
  std::string value = "x";
  for (size_t i = 1; i < widths.size(); ++i) {
    const std::string number = std::to_string(i);
    const bool last = i + 1 == widths.size();
    graph.initializers["w" + number] = torch::randn({widths[i], widths[i - 1]}) * 0.5;
    graph.initializers["b" + number] = torch::randn({widths[i]});
    const std::string layer = last ? "y" : "z" + number;
    graph.nodes.push_back(
        make_node("Gemm", {value, "w" + number, "b" + number}, {layer}, {{"transB", int64_t{1}}}));
    if (!last) graph.nodes.push_back(make_node("Relu", {layer}, {"h" + number}));
    value = "h" + number;
  }
  return graph;
}

// x → relu(conv(x)) → conv → Add of both → mean → y: a residual block, with BatchNormalization.
inline Graph make_residual_network() {
  Graph graph;
  graph.inputs = {make_info("x", {kDynamic, 3, 6, 6})};
  graph.outputs = {make_info("y", {kDynamic, 4, 1, 1})};
  const auto batch_norm = [&](const std::string& from, const std::string& to) {
    graph.initializers[to + "_scale"] = torch::rand({4}) + 0.5;
    graph.initializers[to + "_shift"] = torch::randn({4});
    graph.initializers[to + "_mean"] = torch::randn({4});
    graph.initializers[to + "_var"] = torch::rand({4}) + 0.5;
    graph.nodes.push_back(make_node("BatchNormalization",
                                    {from, to + "_scale", to + "_shift", to + "_mean", to + "_var"},
                                    {to}, {{"epsilon", 1e-3f}}));
  };
  graph.initializers["w1"] = torch::randn({4, 3, 3, 3}) * 0.3;
  graph.initializers["w2"] = torch::randn({4, 4, 3, 3}) * 0.3;
  graph.initializers["b2"] = torch::randn({4});
  const std::map<std::string, Attribute> pads = {{"pads", std::vector<int64_t>{1, 1, 1, 1}}};
  graph.nodes.push_back(make_node("Conv", {"x", "w1"}, {"c1"}, pads));
  batch_norm("c1", "n1");
  graph.nodes.push_back(make_node("Relu", {"n1"}, {"h1"}));
  graph.nodes.push_back(make_node("Conv", {"h1", "w2", "b2"}, {"c2"}, pads));
  batch_norm("c2", "n2");
  graph.nodes.push_back(make_node("Add", {"n2", "h1"}, {"s"}));
  graph.nodes.push_back(make_node("Relu", {"s"}, {"h2"}));
  graph.nodes.push_back(make_node("GlobalAveragePool", {"h2"}, {"y"}));
  return graph;
}

// x → Conv → Relu → 1 × 1 Conv → y.
inline Graph make_conv_head(int64_t inputs, int64_t outputs, int64_t kernel, int64_t padding) {
  Graph graph;
  graph.inputs = {make_info("x", {kDynamic, inputs, kDynamic, kDynamic})};
  graph.outputs = {make_info("y", {kDynamic, 3, kDynamic, kDynamic})};
  graph.initializers["w1"] = torch::randn({outputs, inputs, kernel, kernel}) * 0.3;
  graph.initializers["b1"] = torch::randn({outputs});
  graph.initializers["w2"] = torch::randn({3, outputs, 1, 1});
  graph.nodes.push_back(
      make_node("Conv", {"x", "w1", "b1"}, {"p"},
                {{"pads", std::vector<int64_t>{padding, padding, padding, padding}}}));
  graph.nodes.push_back(make_node("Relu", {"p"}, {"h"}));
  graph.nodes.push_back(make_node("Conv", {"h", "w2"}, {"y"}));
  return graph;
}

// ids [N, ?] int64, scale [N, 2] float, flag [N] bool: the sum of the embedded ids where the flag
// is set, and the scales, through two layers to y [N, 1].
inline Graph make_several_inputs() {
  Graph graph;
  graph.inputs = {make_info("ids", {kDynamic, kDynamic}), make_info("scale", {kDynamic, 2}),
                  make_info("flag", {kDynamic})};
  graph.inputs[0].type = ElementType::kInt64;
  graph.inputs[0].dimension_names = {"batch", "length"};
  graph.inputs[2].type = ElementType::kBool;
  graph.outputs = {make_info("y", {kDynamic, 1})};
  graph.initializers["table"] = torch::arange(10, torch::kFloat) * 0.5;
  graph.initializers["axes"] = torch::tensor({int64_t{1}}, torch::kLong);
  graph.initializers["w1"] = torch::randn({4, 3});
  graph.initializers["b1"] = torch::randn({4});
  graph.initializers["w2"] = torch::randn({1, 4});
  graph.nodes = {
      make_node("Gather", {"table", "ids"}, {"found"}),
      make_node("ReduceSum", {"found", "axes"}, {"sum"}, {{"keepdims", int64_t{1}}}),
      make_node("Cast", {"flag"}, {"on"}, {{"to", int64_t{1}}}),
      make_node("Unsqueeze", {"on", "axes"}, {"column"}),
      make_node("Mul", {"sum", "column"}, {"kept"}),
      make_node("Concat", {"kept", "scale"}, {"all"}, {{"axis", int64_t{1}}}),
      make_node("Gemm", {"all", "w1", "b1"}, {"z1"}, {{"transB", int64_t{1}}}),
      make_node("Relu", {"z1"}, {"h1"}),
      make_node("Gemm", {"h1", "w2"}, {"y"}, {{"transB", int64_t{1}}}),
  };
  return graph;
}

}  // namespace fcp
