// On small ReLU networks the exact range is inside every band, and α-CROWN comes close to it.
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "tests/bounds/heads.h"
#include "tests/reference/relu_range.h"

namespace fcp {
namespace {

std::vector<reference::Layer> layers_of(const Graph& graph, size_t count) {
  std::vector<reference::Layer> layers;
  for (size_t i = 1; i <= count; ++i) {
    const torch::Tensor w =
        graph.initializers.at("w" + std::to_string(i)).tensor().to(torch::kDouble);
    const torch::Tensor b =
        graph.initializers.at("b" + std::to_string(i)).tensor().to(torch::kDouble);
    reference::Layer layer;
    for (int64_t row = 0; row < w.size(0); ++row) {
      layer.weight.emplace_back();
      for (int64_t k = 0; k < w.size(1); ++k)
        layer.weight.back().push_back(w[row][k].item<double>());
      layer.bias.push_back(b[row].item<double>());
    }
    layers.push_back(layer);
  }
  return layers;
}

// Exact ⊆ α-CROWN ⊆ CROWN, and exact ⊆ IBP, CROWN-IBP. Returns the excess of each over the exact.
std::vector<double> check_ladder(const Graph& graph, const Ball& ball,
                                 const reference::ExactRange& exact) {
  const auto head = head_of(graph);
  std::vector<Range> ranges;
  std::vector<double> excess;
  for (const BoundMethod method : kAllMethods) {
    BoundOptions options;
    options.method = method;
    const Range range = make_bounds(head, options)->ranges(ball)[0];
    EXPECT_LE(range.lower.item<double>(), exact.lower + 1e-9) << bound_name(method);
    EXPECT_GE(range.upper.item<double>(), exact.upper - 1e-9) << bound_name(method);
    ranges.push_back(range);
    excess.push_back((range.upper - range.lower).item<double>() - (exact.upper - exact.lower));
  }
  EXPECT_GE(ranges[3].lower.item<double>(), ranges[2].lower.item<double>() - 1e-5);
  EXPECT_LE(ranges[3].upper.item<double>(), ranges[2].upper.item<double>() + 1e-5);
  return excess;
}

TEST(Exact, DeepNetworksOfOneInput) {
  torch::manual_seed(17);
  for (int trial = 0; trial < 20; ++trial) {
    const Graph graph = make_mlp({1, 5, 4, 1});
    const torch::Tensor center = torch::randn({1, 1});
    const float radius = trial < 10 ? 0.2f : 1.0f;
    const double v = center.item<double>();
    check_ladder(graph, {center, torch::full({1}, radius), kAllNorms[trial % 3], {}},
                 reference::range_in_one_dimension(layers_of(graph, 3), v - radius, v + radius));
  }
}

TEST(Exact, OneHiddenLayerOfTwoInputs) {
  torch::manual_seed(18);
  std::vector<double> total(4, 0);
  for (int trial = 0; trial < 30; ++trial) {
    const Graph graph = make_mlp({2, 6, 1});
    const torch::Tensor center = torch::randn({1, 2});
    const float radius = 0.5f;
    const double x = center[0][0].item<double>(), y = center[0][1].item<double>();
    const std::vector<double> excess =
        check_ladder(graph, {center, torch::full({1}, radius), Norm::kInf, {}},
                     reference::range_in_two_dimensions(
                         layers_of(graph, 2), {x - radius, y - radius}, {x + radius, y + radius}));
    for (size_t i = 0; i < 4; ++i) total[i] += excess[i];
  }
  EXPECT_LT(total[3], total[2]);  // each method earns its cost
  EXPECT_LT(total[2], total[0]);
}

}  // namespace
}  // namespace fcp
