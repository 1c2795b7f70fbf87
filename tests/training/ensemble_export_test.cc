#include "fcp/training/ensemble_export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/nn/graph/cut.h"
#include "fcp/nn/graph/inspect.h"
#include "fcp/nn/runtime/network.h"

#include "tests/training/training_examples.h"

namespace fcp {
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
