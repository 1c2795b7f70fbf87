#include "fcp/training/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/nn/graph/cut.h"
#include "fcp/nn/graph/inspect.h"
#include "fcp/nn/graph/onnx_reader.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/nn/runtime/network.h"

#include "tests/training/training_examples.h"

namespace fcp {
namespace {

using testing::ElementsAre;

const NetworkScaling kScaling{{10, -3, 0}, {2, 0.5, 1}, 7};

// Raw rows, and what the network of `mlp` must say to them.
torch::Tensor raw_rows() {
  const torch::Tensor z = tensor_of(normal_array(40, 3, 9));
  return z * torch::tensor({2.0f, 0.5f, 1.0f}) + torch::tensor({10.0f, -3.0f, 0.0f});
}

torch::Tensor expected_outputs(const Mlp& mlp, const torch::Tensor& x) {
  const torch::Tensor scaled =
      (x - torch::tensor(kScaling.mean)) / torch::tensor(kScaling.deviation);
  return mlp.forward(scaled) * kScaling.target;
}

void expect_close(const torch::Tensor& found, const torch::Tensor& expected) {
  ASSERT_EQ(found.sizes(), expected.sizes());
  EXPECT_LT(largest_difference(found, expected), 1e-5 * expected.abs().max().item<double>());
}

TEST(ExportTest, GraphIsTheNetworkOnRawData) {
  const Mlp mlp = initial_mlp({.inputs = 3, .outputs = 2}, 1);
  const Graph graph = export_mlp(mlp, kScaling, Loss::kMse);
  const torch::Tensor x = raw_rows();
  expect_close(Network(graph).forward(x), expected_outputs(mlp, x));
  const Graph read = parse_onnx(serialize_onnx(graph), "memory");
  expect_close(Network(read).forward(x), expected_outputs(mlp, x));
}

TEST(ExportTest, TensorsHaveTheirNames) {
  const Graph graph = export_mlp(initial_mlp({.inputs = 3}, 1), kScaling, Loss::kMse);
  EXPECT_EQ(graph.opset, 17);
  EXPECT_EQ(graph.ir_version, 8);
  EXPECT_THAT(valid_cuts(graph), ElementsAre("input", "centred", "scaled", "layer1", "hidden1",
                                             "layer2", "hidden2", "layer3", "hidden3", "layer4"));
  EXPECT_EQ(graph.outputs[0].name, "prediction");
  EXPECT_THAT(graph.inputs[0].shape, ElementsAre(kDynamic, 3));
  EXPECT_THAT(graph.inputs[0].dimension_names, ElementsAre("batch", ""));
  EXPECT_THAT(graph.outputs[0].shape, ElementsAre(kDynamic, 1));
  EXPECT_EQ(graph.nodes[2].name, "layer1/Gemm");
  EXPECT_EQ(count_layers(graph), 4u);
  EXPECT_EQ(resolve_cut(graph, "2"), "hidden2");
}

TEST(ExportTest, WithoutScalingTheLastLayerIsTheOutput) {
  const Mlp mlp = initial_mlp({.inputs = 3, .hidden = {4}}, 1);
  const Graph graph = export_mlp(mlp, {}, Loss::kMse);
  EXPECT_EQ(graph.nodes.size(), 3u);
  EXPECT_EQ(graph.nodes[0].inputs[0], "input");
  const torch::Tensor x = raw_rows();
  expect_close(Network(graph).forward(x), mlp.forward(x));
}

TEST(ExportTest, LogitsAreNotScaled) {
  const Mlp mlp = initial_mlp({.inputs = 3, .outputs = 5}, 1);
  const Graph graph = export_mlp(mlp, kScaling, Loss::kCrossEntropy);
  EXPECT_EQ(graph.outputs[0].name, "logits");
  const torch::Tensor x = raw_rows();
  expect_close(Network(graph).forward(x) * kScaling.target, expected_outputs(mlp, x));
}

TEST(ExportTest, QuantilesAreTheTwoHalves) {
  const Mlp mlp = initial_mlp({.inputs = 3, .outputs = 4}, 1);
  const torch::Tensor x = raw_rows();
  const Tensors outputs = Network(export_mlp(mlp, kScaling, Loss::kQuantile)).run({x});
  ASSERT_EQ(outputs.size(), 2u);
  expect_close(torch::cat(outputs, 1), expected_outputs(mlp, x));
}

// Two networks in one graph: each output is its own network's, and every hidden tensor cuts both.
TEST(ExportTest, PairOfNetworksIsCuttableAtEachHiddenLayer) {
  const Mlp low = initial_mlp({.inputs = 3}, 1), high = initial_mlp({.inputs = 3}, 2);
  const Graph graph = export_mlp(join_networks(low, high), kScaling, Loss::kQuantile);
  EXPECT_EQ(graph.outputs[0].name, "low");
  EXPECT_EQ(graph.outputs[1].name, "high");
  const torch::Tensor x = raw_rows();
  for (const char* where : {"hidden1", "hidden2", "hidden3"}) {
    const CutGraph parts = cut(graph, where);
    const torch::Tensor feature = Network(parts.backbone).forward(x);
    EXPECT_EQ(feature.size(1), 128);
    const Tensors outputs = Network(parts.head).run({feature});
    expect_close(outputs[0], expected_outputs(low, x));
    expect_close(outputs[1], expected_outputs(high, x));
  }
}

}  // namespace
namespace {

// Untrained networks with inputs of random scales do as well as trained ones.
EnsembleFit random_fit(const InputEncoding& encoding, int64_t networks, int64_t outputs) {
  EnsembleFit fit;
  fit.shape = {encoding.width(), {12, 10, 6}, outputs};
  std::vector<uint64_t> seeds;
  for (int64_t s = 0; s < networks; ++s) seeds.push_back(static_cast<uint64_t>(s));
  fit.parameters = initial_stack(fit.shape, seeds);
  fit.parameters.narrow(1, 0, encoding.width())
      .copy_(tensor_of(normal_array(networks, encoding.width(), 5)));
  return fit;
}

TEST(EnsembleExportTest, TheGraphIsTheMeanOfTheNetworks) {
  const torch::NoGradGuard no_gradients;
  const Array x = normal_array(50, 4, 1);
  const InputEncoding encoding = fit_input_encoding(x);
  for (const int64_t members : {1, 3}) {
    const EnsembleFit fit = random_fit(encoding, 4, 4);
    std::vector<int64_t> networks;
    for (int64_t e = 0; e < members; ++e) networks.push_back(3 - e);
    // The medians of two targets, in their unit.
    const OutputScaling scaling{{2, 3}, {5, 0.5}, {1000, -1}};
    const Graph graph = export_ensemble(fit, networks, encoding, scaling, Loss::kMse);
    const torch::Tensor encoded = encode_rows(encoding, x);
    std::vector<int64_t> all(50);
    for (int64_t i = 0; i < 50; ++i) all[static_cast<size_t>(i)] = i;
    torch::Tensor expected = torch::zeros({50, 2}, torch::kDouble);
    for (const int64_t network : networks) {
      expected += network_outputs(fit, network, encoded, all).narrow(1, 2, 2).to(torch::kDouble) /
                  static_cast<double>(members);
    }
    expected = expected * torch::tensor({5.0, 0.5}, torch::kDouble) +
               torch::tensor({1000.0, -1.0}, torch::kDouble);
    const torch::Tensor found = Network(graph).forward(tensor_of(x));
    EXPECT_LT(largest_difference(found.to(torch::kDouble), expected), 1e-3) << members;
  }
}

TEST(EnsembleExportTest, EveryHiddenLayerIsACutWithBounds) {
  const InputEncoding encoding = fit_input_encoding(normal_array(50, 4, 1));
  const EnsembleFit fit = random_fit(encoding, 3, 2);
  const Graph graph = export_ensemble(fit, {0, 1, 2}, encoding, {{0}, {1}, {0}}, Loss::kMse);
  const std::vector<std::string> cuts = valid_cuts(graph);
  EXPECT_THAT(cuts, testing::IsSupersetOf({"hidden1", "hidden2", "features"}));
  for (const CutReport& report : inspect(graph).cuts) {
    if (report.tensor == "features") {
      EXPECT_EQ(report.size, 3 * 6);
      EXPECT_EQ(report.head_layers, 1u);
    }
    if (report.tensor == "hidden1" || report.tensor == "hidden2" || report.tensor == "features") {
      EXPECT_EQ(report.bounds, "linear") << report.tensor;
    }
  }
}

TEST(EnsembleExportTest, OutputsAreNamedByTheLoss) {
  const InputEncoding encoding = fit_input_encoding(normal_array(50, 4, 1));
  const EnsembleFit fit = random_fit(encoding, 2, 2);
  const OutputScaling both{{0, 1}, {1, 1}, {0, 0}};
  const Graph quantiles = export_ensemble(fit, {0, 1}, encoding, both, Loss::kQuantile);
  ASSERT_EQ(quantiles.outputs.size(), 2u);
  EXPECT_EQ(quantiles.outputs[0].name, "low");
  EXPECT_EQ(quantiles.outputs[1].name, "high");
  const Graph logits = export_ensemble(fit, {0, 1}, encoding, both, Loss::kCrossEntropy);
  EXPECT_EQ(logits.outputs[0].name, "logits");
}

}  // namespace
}  // namespace fcp
