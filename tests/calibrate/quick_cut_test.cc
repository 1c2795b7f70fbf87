#include "fcp/calibrate/quick_cut.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/conformal/quantile.h"
#include "fcp/methods/method.h"
#include "fcp/predictor/scored_network.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

// A random perceptron, and rows whose noise grows with the first column.
struct LadderWorld {
  explicit LadderWorld(int64_t rows, int64_t outputs = 1) : graph(make_mlp({4, 24, 24, outputs})) {
    Random random(3);
    const auto fill = [&](const torch::Tensor& tensor, double deviation) {
      for (int64_t i = 0; i < tensor.numel(); ++i) {
        tensor.data_ptr<float>()[i] = static_cast<float>(deviation * random.normal());
      }
    };
    for (const auto& [name, tensor] : graph.initializers) fill(tensor, 0.4);
    x = torch::empty({rows, 4});
    fill(x, 1);
    torch::Tensor noise = torch::empty({rows, outputs});
    fill(noise, 1);
    const torch::NoGradGuard no_gradients;
    y = (Network(graph).forward(x) + noise * x.select(1, 0).exp().unsqueeze(1)).to(torch::kDouble);
  }

  Graph graph;
  torch::Tensor x, y;
};

std::vector<size_t> all_rows(size_t rows) {
  std::vector<size_t> all;
  for (size_t row = 0; row < rows; ++row) all.push_back(row);
  return all;
}

TEST(RegionLadder, ComesCloseToExactScoresAndLengths) {
  for (const char* name : {"nested", "linearized"}) {
    for (const int64_t outputs : {1, 2}) {
      const LadderWorld world(300, outputs);
      const ScoreOptions sharp(name);
      const ScoredNetwork scored(world.graph, sharp, "h1");
      const torch::Tensor features = scored.features(world.x);
      const Level level(0.1);
      const RegionLadder ladder(scored.score(), sharp, features, world.y, level);
      const double slope = measure_slope(scored.score(), features, world.y, level);
      EXPECT_NEAR(ladder.slope(level), slope, 0.01 * slope) << name;
      for (const double floor : {0.0, 0.5}) {
        ScoreOptions wide = sharp;
        wide.set(field::floor, floor);
        wide.set(field::slope, slope);
        const auto exact = make_score(wide, scored.shared_head());
        const double radius = conformal_quantile(exact->score(features, world.y), level);
        const double length = region_lengths(exact->region(features, radius)).mean().item<double>();
        const double widening = floor * slope / 2;
        const double found = conformal_quantile(ladder.scores(widening), level);
        const double tolerance = sharp.as<LinearizedOptions>() != nullptr ? 1e-6 : 0.01;
        EXPECT_NEAR(found, radius, tolerance * radius) << name << ' ' << floor;
        EXPECT_NEAR(ladder.mean_length(found, widening, all_rows(300)), length, tolerance * length)
            << name << ' ' << floor;
        const double miss =
            region_distances(exact->region(features, radius), world.y).mean().item<double>();
        EXPECT_NEAR(ladder.mean_distance(found, widening, all_rows(300)), miss, 0.05 * miss)
            << name << ' ' << floor;
        EXPECT_GT(miss, 0);
      }
    }
  }
}

TEST(RegionLadder, IsForBandsThatGrow) {
  EXPECT_TRUE(has_ladder(NestedOptions{}));
  EXPECT_TRUE(has_ladder(LinearizedOptions{}));
  EXPECT_FALSE(has_ladder(ResidualOptions{}));
  NestedOptions crown;
  crown.bound.method = BoundMethod::kCrown;
  EXPECT_FALSE(has_ladder(crown));
  EXPECT_FALSE(has_ladder(ScoreOptions(NestedOptions{}, {.rectifier = "r"})));
}

TEST(RegionLadder, RefusesAnswersThatAreNotNumbers) {
  LadderWorld world(50);
  const ScoredNetwork scored(world.graph, NestedOptions{}, "h1");
  const torch::Tensor features = scored.features(world.x);
  world.y[7][0] = std::nan("");
  EXPECT_THROW(RegionLadder(scored.score(), NestedOptions{}, features, world.y, Level(0.1)), Error);
}

// Its choice is judged by the exact search, which sees all rows: hardly longer than the shortest.
TEST(QuickCut, FindsWhatTheExactSearchFinds) {
  const LadderWorld world(1500);
  for (const char* name : {"nested", "linearized"}) {
    const ScoreOptions score(name);
    const QuickCut quick = find_cut(world.graph, score, world.x, world.y, {});
    const Selection exact = select_cut(world.graph, score, world.x, world.y, {});
    double own = 0;
    for (const Candidate& one : exact.candidates) {
      if (one.cut == quick.cut && one.score.value(field::floor) == quick.score.value(field::floor))
        own = one.length;
    }
    EXPECT_GT(own, 0) << name;
    EXPECT_LT(own, 1.03 * exact.candidates[exact.chosen].length) << name;
    EXPECT_EQ(quick.ladder.rows(), 1500U);
    EXPECT_EQ(quick.score.value(field::scale).empty(), score.as<LinearizedOptions>() != nullptr);
  }
}

TEST(QuickCut, TakesOnlyTheCutsThatAreAllowed) {
  const LadderWorld world(100);
  SelectionOptions options;
  options.cuts = {"h2"};
  EXPECT_EQ(find_cut(world.graph, NestedOptions{}, world.x, world.y, options).cut, "h2");
  options.work = 0;
  options.cheapest = false;
  EXPECT_THAT([&] { find_cut(world.graph, NestedOptions{}, world.x, world.y, options); },
              ::testing::ThrowsMessage<Error>(::testing::HasSubstr("h2: would take about")));
}

}  // namespace
}  // namespace fcp
