#include "fcp/predictor/scored_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/nn/graph/cut.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

using testing::ThrowsMessage;

// The residual does not depend on the cut: every cut gives the whole network's answers.
TEST(ScoredNetwork, CutEqualsWhole) {
  torch::manual_seed(1);
  for (const Graph& graph : {make_mlp({3, 5, 4, 2}), make_residual_network()}) {
    std::vector<int64_t> shape = graph.inputs[0].shape;
    shape[0] = 6;
    const torch::Tensor x = torch::randn(shape);
    const torch::Tensor prediction = Network(graph).forward(x).flatten(1).to(torch::kDouble);
    const torch::Tensor y = prediction + torch::randn_like(prediction);
    ScoreOptions options = ResidualOptions{};
    const ScoredNetwork whole(graph, options, "");
    EXPECT_EQ(whole.cut(), "");
    EXPECT_TRUE(torch::equal(whole.features(x), x));
    const std::vector<double> expected = whole.score().score(x, y);
    for (const std::string& cut : valid_cuts(graph)) {
      const ScoredNetwork predictor(graph, options, cut);
      EXPECT_EQ(predictor.cut(), cut);
      const torch::Tensor features = predictor.features(x);
      EXPECT_FALSE(features.requires_grad());
      const std::vector<double> scores = predictor.score().score(features, y);
      for (size_t i = 0; i < scores.size(); ++i) EXPECT_NEAR(scores[i], expected[i], 1e-5) << cut;
      const Regions regions = predictor.score().region(features, 0.5);
      EXPECT_TRUE(torch::allclose(regions.prediction, prediction, 1e-5, 1e-5)) << cut;
      EXPECT_TRUE(
          torch::allclose(predictor.shared_head()->forward(features).flatten(1).to(torch::kDouble),
                          prediction, 1e-5, 1e-5));
    }
  }
}

TEST(ScoredNetwork, CutsByNumberOfLayers) {
  const Graph graph = make_mlp({3, 5, 4, 2});
  ScoreOptions options;
  EXPECT_EQ(ScoredNetwork(graph, options, "-1").cut(), "h2");
  EXPECT_EQ(ScoredNetwork(graph, options, "1").cut(), "h1");
}

// An edited artifact must not make a prediction run for years.
TEST(ScoredNetwork, RefusesEndlessBounds) {
  ScoreOptions options;
  options.find(field::bound)->method = BoundMethod::kAlphaCrown;
  options.find(field::bound)->iterations = 2147483647;
  EXPECT_THAT(
      [&] {
        ScoredNetwork(make_mlp({3, 5, 4, 2}), options, "h1");
      },
      ThrowsMessage<Error>("alpha-crown takes at most 10000 iterations; found 2147483647"));
}

TEST(ScoredNetwork, NeedsOneInput) {
  Graph graph = make_mlp({3, 2});
  graph.inputs.push_back(make_info("other", {kDynamic, 3}));
  EXPECT_THAT([&] { ScoredNetwork(graph, {}, ""); },
              ThrowsMessage<Error>("the network has 2 inputs; calibration needs one"));
}

}  // namespace
}  // namespace fcp
