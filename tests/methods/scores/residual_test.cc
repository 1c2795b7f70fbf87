#include "fcp/methods/scores/residual.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

#include "tests/methods/scores/heads.h"

namespace fcp {
namespace {

using testing::ElementsAre;
using testing::ThrowsMessage;

// y = (v, 2v), spread = |v|.
Graph two_outputs() {
  Graph graph = linear_head(torch::tensor({{1.0f}, {2.0f}}), torch::zeros({2}));
  graph.nodes.push_back(make_node("Abs", {"x"}, {"spread"}));
  graph.outputs.push_back(make_info("spread", {kDynamic, 1}));
  return graph;
}

TEST(Residual, IsTheLargestDistanceOverTheOutputs) {
  const auto head = network_of(linear_head(torch::tensor({{1.0f}, {2.0f}}), torch::zeros({2})));
  const std::unique_ptr<Score> score = make_score(ResidualOptions{}, head);
  const torch::Tensor v = torch::tensor({{1.0f}, {-3.0f}});
  EXPECT_THAT(score->score(v, torch::tensor({{1.5, 2.25}, {-3.0, 1.0}}, torch::kDouble)),
              ElementsAre(0.5, 7));
  const Regions regions = score->region(v, 0.5);
  const torch::Tensor prediction = torch::tensor({{1.0, 2.0}, {-3.0, -6.0}}, torch::kDouble);
  EXPECT_TRUE(torch::equal(regions.prediction, prediction));
  EXPECT_TRUE(torch::equal(regions.lower, prediction - 0.5));
  EXPECT_TRUE(torch::equal(regions.upper, prediction + 0.5));
}

TEST(Residual, IsDividedByTheSpread) {
  const ScoreOptions options(ResidualOptions{.normalize = "spread"}, {.output = "y"});
  const std::unique_ptr<Score> score = make_score(options, network_of(two_outputs()));
  const torch::Tensor v = torch::tensor({{1.0f}, {-4.0f}});
  EXPECT_THAT(score->score(v, torch::tensor({{1.5, 2.25}, {-4.0, -10.0}}, torch::kDouble)),
              ElementsAre(0.5, 0.5));
  const Regions regions = score->region(v, 0.5);
  const torch::Tensor prediction = torch::tensor({{1.0, 2.0}, {-4.0, -8.0}}, torch::kDouble);
  const torch::Tensor half = torch::tensor({{0.5}, {2.0}}, torch::kDouble);
  EXPECT_TRUE(torch::allclose(regions.lower, prediction - half, 1e-15, 0));
  EXPECT_TRUE(torch::allclose(regions.upper, prediction + half, 1e-15, 0));
}

TEST(Residual, RefusesASpreadThatIsNotPositive) {
  const ScoreOptions options(ResidualOptions{.normalize = "spread"}, {.output = "y"});
  const std::unique_ptr<Score> score = make_score(options, network_of(two_outputs()));
  EXPECT_THAT(
      [&] {
        score->region(torch::tensor({{1.0f}, {2.0f}, {0.0f}}), 1);
      },
      ThrowsMessage<Error>("row 2: the spread by which residuals are normalised is not positive"));
}

TEST(Residual, AsksWhichOutput) {
  EXPECT_THAT([&] { make_score(ResidualOptions{}, network_of(two_outputs())); },
              ThrowsMessage<Error>("the network has 2 outputs ('y', 'spread'); choose one"));
}

TEST(Residual, KnowsWhatItIs) {
  EXPECT_THAT(score_names(),
              ElementsAre("aps", "cqr", "density", "ellipsoid", "feature_cqr", "feature_margin",
                          "feature_sampled", "lac", "linearized", "nested", "quantiles", "raps",
                          "residual", "saps", "spread", "surrogate"));
  EXPECT_FALSE(uses_features("residual"));
  EXPECT_TRUE(ScoreOptions(ResidualOptions{}).obeys_law());
  EXPECT_TRUE(uses_features("surrogate"));
  EXPECT_FALSE(ScoreOptions(SurrogateOptions{}).obeys_law());
  EXPECT_TRUE(ScoreOptions(NestedOptions{}).obeys_law() && uses_features("nested"));
  EXPECT_TRUE(ScoreOptions(LinearizedOptions{}).obeys_law() && uses_features("linearized"));
}

}  // namespace
}  // namespace fcp
