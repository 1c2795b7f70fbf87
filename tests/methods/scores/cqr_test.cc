#include "fcp/methods/scores/cqr.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

#include "tests/methods/scores/heads.h"

namespace fcp {
namespace {

using testing::ElementsAre;
using testing::ThrowsMessage;

torch::Tensor column(std::vector<double> values) {
  const auto rows = static_cast<int64_t>(values.size());
  return torch::tensor(values, torch::kDouble).reshape({rows, 1});
}

// low = v − 1, high = 1 − v: they cross where v > 1.
std::shared_ptr<const Network> crossing_head() {
  Graph graph = linear_head(torch::ones({1, 1}), torch::full({1}, -1.0f));
  add_high_output(graph, -torch::ones({1, 1}), torch::ones({1}));
  return network_of(graph);
}

ScoreOptions cqr_options(bool asymmetric) {
  ScoreOptions options = CqrOptions{};
  options.set(field::asymmetric, asymmetric);
  return options;
}

TEST(Cqr, ScoresByHand) {
  const auto score = make_score(cqr_options(false), crossing_head());
  EXPECT_EQ(score->sides(), 1);
  // At v = 0 the band is [−1, 1]; at v = 3 the quantiles cross and it is [−2, 2].
  const torch::Tensor v = torch::tensor({0.0f, 0.0f, 0.0f, 3.0f, 3.0f, 1.0f}).reshape({6, 1});
  const torch::Tensor y = column({0.5, 1.5, -4, 0, 2.25, 0});
  EXPECT_THAT(score->score(v, y), ElementsAre(-0.5, 0.5, 3, -2, 0.25, 0));
}

TEST(Cqr, AsymmetricScoresByHand) {
  const auto score = make_score(cqr_options(true), crossing_head());
  EXPECT_EQ(score->sides(), 2);
  const torch::Tensor v = torch::tensor({0.0f, 0.0f, 3.0f}).reshape({3, 1});
  EXPECT_THAT(score->score(v, column({0.5, -4, 2.25})),
              ElementsAre(-1.5, -0.5, 3, -5, -4.25, 0.25));
}

TEST(Cqr, RegionsByHand) {
  const torch::Tensor v = torch::tensor({0.0f, 3.0f}).reshape({2, 1});
  const Regions wide = make_score(cqr_options(false), crossing_head())->region(v, 0.5);
  EXPECT_TRUE(torch::allclose(wide.lower, column({-1.5, -2.5}), 1e-14, 0));
  EXPECT_TRUE(torch::allclose(wide.upper, column({1.5, 2.5}), 1e-14, 0));
  EXPECT_TRUE(torch::equal(wide.prediction, column({0, 0})));
  // Shrunk by 1.5, the first band has nothing left and the second [−0.5, 0.5].
  const Regions shrunk = make_score(cqr_options(false), crossing_head())->region(v, -1.5);
  EXPECT_TRUE(torch::allclose(shrunk.lower, column({0.5, -0.5}), 1e-14, 0));
  EXPECT_TRUE(torch::allclose(shrunk.upper, column({-0.5, 0.5}), 1e-14, 0));
  // Each row and side its own radius; +∞ opens its side only.
  const torch::Tensor radii = torch::tensor({{0.25, -0.5}, {-1.0, kForever}}, torch::kDouble);
  const Regions sides = make_score(cqr_options(true), crossing_head())->region(v, radii);
  EXPECT_TRUE(torch::allclose(sides.lower, column({-1.25, -1}), 1e-14, 0));
  EXPECT_TRUE(torch::allclose(sides.upper, column({0.5, kForever}), 1e-14, 0));
}

TEST(Cqr, SeveralOutputsCountByTheirLargest) {
  Graph graph = linear_head(torch::tensor({{1.0f}, {2.0f}}), torch::zeros({2}));
  add_high_output(graph, torch::tensor({{1.0f}, {2.0f}}), torch::tensor({1.0f, 4.0f}));
  const torch::Tensor v = torch::ones({1, 1});  // bands [1, 2] and [2, 6]
  const torch::Tensor y = torch::tensor({{1.5, 7.0}}, torch::kDouble);
  EXPECT_THAT(make_score(cqr_options(false), network_of(graph))->score(v, y), ElementsAre(1));
  EXPECT_THAT(make_score(cqr_options(true), network_of(graph))->score(v, y), ElementsAre(-0.5, 1));
}

// A third output, so that two must be named.
Graph three_outputs() {
  Graph graph = linear_head(torch::ones({1, 1}), torch::zeros({1}));
  add_high_output(graph, torch::ones({1, 1}), torch::ones({1}));
  graph.nodes.push_back(make_node("Relu", {"x"}, {"middle"}));
  graph.outputs.insert(graph.outputs.begin(), make_info("middle", {kDynamic, 1}));
  return graph;
}

TEST(Cqr, OutputsAreNamed) {
  const auto head = network_of(three_outputs());
  ScoreOptions options = cqr_options(true);
  options.set(field::low, "y");
  options.set(field::high, "high");
  const torch::Tensor v = torch::zeros({1, 1});
  EXPECT_THAT(make_score(options, head)->score(v, column({3})), ElementsAre(-3, 2));
  // Named the other way round they cross, and are taken in their order.
  std::swap(*options.find(field::low), *options.find(field::high));
  EXPECT_THAT(make_score(options, head)->score(v, column({3})), ElementsAre(-3, 2));
  const QuantileOutputs outputs = quantile_outputs(*head, "high", "y");
  EXPECT_EQ(outputs.low, 2u);
  EXPECT_EQ(outputs.high, 1u);
}

TEST(Cqr, SaysWhichOutputsItNeeds) {
  const auto three = network_of(three_outputs());
  const auto complaint = [](ScoreOptions options, const std::shared_ptr<const Network>& head) {
    return [options, head] { make_score(options, head); };
  };
  for (const char* name : {"cqr", "feature_cqr"}) {
    ScoreOptions options(name);
    EXPECT_THAT(complaint(options, three),
                ThrowsMessage<Error>(
                    "quantiles need a network with two outputs, low and high, as `fcp train --loss "
                    "quantile` makes; this one has 3: name two as low and high"));
    options.set(field::low, "y");
    EXPECT_THAT(complaint(options, three),
                ThrowsMessage<Error>("quantiles need two outputs of the network, low and high; "
                                     "found 'y' and ''"));
    options.set(field::high, "y");
    EXPECT_THAT(complaint(options, three),
                ThrowsMessage<Error>("quantiles need two outputs of the network, low and high; "
                                     "found 'y' and 'y'"));
    options.set(field::high, "higher");
    EXPECT_THAT(complaint(options, three),
                ThrowsMessage<Error>("the network has no output 'higher', only 'middle', 'y', "
                                     "'high'"));
  }
}

TEST(Cqr, QuantilesMustHaveOneShape) {
  Graph graph = linear_head(torch::ones({1, 1}), torch::zeros({1}));
  add_high_output(graph, torch::ones({2, 1}), torch::ones({2}));
  const auto head = network_of(graph);
  for (const char* name : {"cqr", "feature_cqr"}) {
    for (const bool paper : {false, true}) {
      ScoreOptions options(name);
      if (auto* of_features = options.as<FeatureCqrOptions>()) {
        of_features->paper = paper;
        of_features->steps = 1;
      }
      const auto score = make_score(options, head);
      EXPECT_THAT(
          [&] {
            score->score(torch::zeros({4, 1}), torch::zeros({4, 1}));
          },
          ThrowsMessage<Error>(
              "the low quantile answers 1 numbers per row, the high one 2; expected as many"))
          << name;
    }
  }
}

TEST(Cqr, TakesOneRadiusASide) {
  for (const char* name : {"cqr", "feature_cqr"}) {
    ScoreOptions options(name);
    options.set(field::asymmetric, true);
    const auto score = make_score(options, crossing_head());
    EXPECT_THROW(score->region(torch::zeros({3, 1}), torch::zeros({3, 1}, torch::kDouble)), Error);
    EXPECT_THROW(score->region(torch::zeros({3, 1}), torch::zeros({2, 2}, torch::kDouble)), Error);
    if (options.as<CqrOptions>()) continue;
    options.set(field::paper, true);
    options.set(field::steps, 1);
    const auto paper = make_score(options, crossing_head());
    EXPECT_THROW(paper->region(torch::zeros({3, 1}), torch::zeros({3, 1}, torch::kDouble)), Error);
  }
}

}  // namespace
}  // namespace fcp
