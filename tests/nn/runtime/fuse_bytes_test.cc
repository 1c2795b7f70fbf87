// Quantised networks in bytes: the steps they take, against the single nodes and against whole
// numbers.
#include "fcp/nn/runtime/fuse_bytes.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/nn/runtime/batch_free.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

struct QuantizedCase {
  torch::ScalarType type;  // of activations
  int64_t channels, filters, side, kernel;
  std::vector<int64_t> strides, pads;
  bool per_filter, float_bias;
  std::string activation;
};
const std::vector<QuantizedCase> kQuantizedCases = {
    {torch::kByte, 1, 16, 12, 3, {1, 1}, {1, 1, 1, 1}, false, false, "Relu"},
    {torch::kChar, 3, 8, 11, 5, {2, 2}, {2, 2, 2, 2}, true, false, "Relu"},
    {torch::kByte, 8, 20, 9, 3, {1, 2}, {0, 1, 2, 1}, true, true, "Clip"},
    {torch::kChar, 4, 5, 8, 1, {1, 1}, {0, 0, 0, 0}, false, false, ""},
};

// One value through QuantizeLinear and DequantizeLinear.
std::string in_steps(Graph& graph, const std::string& from, float scale, torch::ScalarType type) {
  const std::string name = from + "_steps";
  graph.initializers[name + "_scale"] = torch::full({}, scale);
  graph.initializers[name + "_zero"] = torch::full({}, type == torch::kByte ? 113 : -7, type);
  graph.nodes.push_back(
      make_node("QuantizeLinear", {from, name + "_scale", name + "_zero"}, {name + "_q"}));
  graph.nodes.push_back(
      make_node("DequantizeLinear", {name + "_q", name + "_scale", name + "_zero"}, {name}));
  return name;
}

std::string constant_steps(Graph& graph, const std::string& name, const torch::Tensor& steps,
                           const torch::Tensor& scale) {
  graph.initializers[name + "_q"] = steps;
  graph.initializers[name + "_scale"] = scale;
  graph.nodes.push_back(make_node("DequantizeLinear", {name + "_q", name + "_scale"}, {name},
                                  {{"axis", int64_t{0}}}));
  return name;
}

// Conv, the activation, MaxPool, Flatten, Gemm, all between quantised values.
Graph quantized_network(const QuantizedCase& each, int64_t outputs) {
  Graph graph;
  graph.inputs = {make_info("x", {kDynamic, each.channels, each.side, each.side})};
  graph.outputs = {make_info("y", {kDynamic, outputs})};
  graph.initializers["low"] = torch::full({}, -0.5f);
  graph.initializers["high"] = torch::full({}, 1.5f);
  const torch::Tensor scale =
      each.per_filter ? torch::rand({each.filters}) * 0.01 + 0.002 : torch::full({}, 0.00617f);
  const std::string x = in_steps(graph, "x", 0.0203f, each.type);
  const std::string w = constant_steps(
      graph, "w",
      torch::randint(-127, 128, {each.filters, each.channels, each.kernel, each.kernel})
          .to(torch::kChar),
      scale);
  const torch::Tensor bias = torch::randint(-900, 900, {each.filters}).to(torch::kInt);
  std::string b = "b";
  if (each.float_bias) {
    graph.initializers[b] = torch::randn({each.filters});
  } else {
    b = constant_steps(graph, "b", bias, scale.reshape({-1}).expand({each.filters}) * 0.0203f);
  }
  graph.nodes.push_back(
      make_node("Conv", {x, w, b}, {"c"}, {{"strides", each.strides}, {"pads", each.pads}}));
  std::string value = "c";
  if (each.activation == "Relu") graph.nodes.push_back(make_node("Relu", {value}, {"a"}));
  if (each.activation == "Clip") {
    graph.nodes.push_back(make_node("Clip", {value, "low", "high"}, {"a"}));
  }
  if (!each.activation.empty()) value = "a";
  value = in_steps(graph, value, 0.0311f, each.type);
  graph.nodes.push_back(make_node(
      "MaxPool", {value}, {"p"},
      {{"kernel_shape", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}}));
  value = in_steps(graph, "p", 0.0311f, each.type);
  graph.nodes.push_back(make_node("Flatten", {value}, {"f"}));
  value = in_steps(graph, "f", 0.0311f, each.type);
  const auto places = [&](size_t axis) {
    const int64_t padded = each.side + each.pads[axis] + each.pads[axis + 2];
    return ((padded - each.kernel) / each.strides[axis] + 1) / 2;
  };
  const std::string v = constant_steps(
      graph, "v",
      torch::randint(-127, 128, {outputs, each.filters * places(0) * places(1)}).to(torch::kChar),
      torch::full({}, 0.00437f));
  graph.nodes.push_back(make_node("Gemm", {value, v}, {"g"}, {{"transB", int64_t{1}}}));
  value = in_steps(graph, "g", 0.0519f, each.type);
  graph.nodes.push_back(make_node("Identity", {value}, {"y"}));
  return graph;
}

// How many steps run, and that neither batch nor threads change a bit.
TEST(FuseBytes, RunsQuantizedNetworksInFewSteps) {
  torch::manual_seed(1);
  for (const QuantizedCase& each : kQuantizedCases) {
    const Network network(quantized_network(each, 7));
    std::vector<std::string> ran;
    const torch::Tensor x = torch::randn({5, each.channels, each.side, each.side});
    const auto note = [&](const Step& step, const Tensors&, const Tensors&) {
      ran.push_back(step.node.op);
    };
    const torch::Tensor y = network.run_fused({x}, note)[0];
    EXPECT_LE(ran.size(), 7u) << testing::PrintToString(ran);
    EXPECT_TRUE(is_batch_free(network));
    for (int64_t row = 0; row < 5; ++row) {
      EXPECT_TRUE(torch::equal(network.run({x.narrow(0, row, 1)})[0], y.narrow(0, row, 1)));
    }
    EXPECT_TRUE(torch::equal(run_apart(network, {x})[0], y));
    // Steps of 0.0519: sums in single precision may round to the other side of a half, and one step
    // of an input moves an output by less than one of its own.
    const torch::Tensor apart =
        network.run({x}, [](const Step&, const Tensors&, const Tensors&) {})[0];
    const torch::Tensor off = (y - apart).abs();
    EXPECT_LE(off.max().item<float>(), 0.0525f);
    EXPECT_LE(off.count_nonzero().item<int64_t>(), 1);
  }
}

// Where the sums of single precision are exact, both ways are equal: scales are powers of two.
TEST(FuseBytes, EqualsSingleNodesWhereThoseAreExact) {
  torch::manual_seed(2);
  for (const auto type : {torch::kByte, torch::kChar}) {
    Graph graph;
    graph.inputs = {make_info("x", {kDynamic, 40})};
    graph.outputs = {make_info("y", {kDynamic, 12})};
    const std::string x = in_steps(graph, "x", 0.03125f, type);
    const std::string w = constant_steps(
        graph, "w", torch::randint(-127, 128, {40, 12}).to(torch::kChar), torch::full({}, 0.125f));
    graph.nodes.push_back(make_node("MatMul", {x, w}, {"m"}));
    graph.nodes.push_back(make_node("Identity", {in_steps(graph, "m", 0.5f, type)}, {"y"}));
    const Network network(std::move(graph));
    const torch::Tensor rows = torch::randn({300, 40});
    EXPECT_TRUE(
        torch::equal(network.run({rows})[0],
                     network.run({rows}, [](const Step&, const Tensors&, const Tensors&) {})[0]));
  }
}

// QLinearConv and QLinearMatMul, whose single nodes sum whole numbers in double precision.
TEST(FuseBytes, EqualsOperatorsOfQuantizedNumbers) {
  torch::manual_seed(4);
  Graph graph;
  graph.inputs = {make_info("x", {kDynamic, 3, 10, 10})};
  graph.outputs = {make_info("y", {kDynamic, 6})};
  const auto size = [&](const std::string& name, const torch::Tensor& scale, int64_t zero,
                        torch::ScalarType type) {
    graph.initializers[name + "_scale"] = scale;
    graph.initializers[name + "_zero"] = torch::full(scale.sizes(), zero, type);
  };
  size("x", torch::full({}, 0.02f), 120, torch::kByte);
  size("w", torch::rand({12}) * 0.01 + 0.001, 0, torch::kChar);
  size("c", torch::full({}, 0.05f), 100, torch::kByte);
  size("v", torch::full({}, 0.007f), 128, torch::kByte);
  size("m", torch::full({}, 0.3f), 90, torch::kByte);
  graph.initializers["w"] = torch::randint(-127, 128, {12, 3, 3, 3}).to(torch::kChar);
  graph.initializers["b"] = torch::randint(-900, 900, {12}).to(torch::kInt);
  graph.initializers["v"] = torch::randint(0, 256, {12 * 64, 6}).to(torch::kByte);
  graph.nodes = {
      make_node("QuantizeLinear", {"x", "x_scale", "x_zero"}, {"x_q"}),
      make_node("QLinearConv",
                {"x_q", "x_scale", "x_zero", "w", "w_scale", "w_zero", "c_scale", "c_zero", "b"},
                {"c"}),
      make_node("Flatten", {"c"}, {"f"}),
      make_node("QLinearMatMul",
                {"f", "c_scale", "c_zero", "v", "v_scale", "v_zero", "m_scale", "m_zero"}, {"m"}),
      make_node("DequantizeLinear", {"m", "m_scale", "m_zero"}, {"y"})};
  const Network network(std::move(graph));
  EXPECT_TRUE(is_batch_free(network));
  const torch::Tensor x = torch::randn({20, 3, 10, 10}), y = network.run({x})[0];
  EXPECT_GT(y.std().item<float>(), 0);
  EXPECT_TRUE(
      torch::equal(y, network.run({x}, [](const Step&, const Tensors&, const Tensors&) {})[0]));
  EXPECT_TRUE(torch::equal(network.run({x.narrow(0, 3, 1)})[0], y.narrow(0, 3, 1)));
}

// A value that someone else reads too, scales along the wrong axis, and weights that are no signed
// bytes stay as the file has them.
TEST(FuseBytes, LeavesOthersAlone) {
  torch::manual_seed(3);
  Graph graph;
  graph.inputs = {make_info("x", {kDynamic, 4})};
  graph.outputs = {make_info("y", {kDynamic, 4}), make_info("z", {kDynamic, 4})};
  const std::string x = in_steps(graph, "x", 0.1f, torch::kByte);
  graph.initializers["w_zero"] = torch::full({}, 3, torch::kByte);
  torch::Tensor weights = torch::randint(0, 256, {4, 4}).to(torch::kByte);
  weights[0][0] = 255;
  graph.initializers["w_q"] = weights;
  graph.initializers["w_scale"] = torch::full({}, 0.1f);
  graph.nodes.push_back(make_node("DequantizeLinear", {"w_q", "w_scale", "w_zero"}, {"w"}));
  graph.nodes.push_back(make_node("MatMul", {x, "w"}, {"y"}));
  const std::string v = constant_steps(graph, "v", torch::randint(-9, 9, {4, 4}).to(torch::kChar),
                                       torch::rand({4}) + 0.1);  // of rows of [K, M]
  graph.nodes.push_back(make_node("MatMul", {x, v}, {"z"}));
  const Network network(std::move(graph));
  std::vector<std::string> ran;
  const torch::Tensor rows = torch::randn({6, 4});
  const Tensors fused = network.run_fused(
      {rows},
      [&](const Step& step, const Tensors&, const Tensors&) { ran.push_back(step.node.op); });
  EXPECT_EQ(ran,
            (std::vector<std::string>{"QuantizeLinear", "DequantizeLinear", "MatMul", "MatMul"}));
  const Tensors apart = network.run({rows}, [](const Step&, const Tensors&, const Tensors&) {});
  EXPECT_TRUE(torch::equal(fused[0], apart[0]));
  EXPECT_TRUE(torch::equal(fused[1], apart[1]));
}

}  // namespace
}  // namespace fcp
