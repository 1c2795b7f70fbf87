#include "fcp/methods/scores/spread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

#include "tests/methods/scores/heads.h"

namespace fcp {
namespace {

// y = x_0, σ = x_1.
std::shared_ptr<const Network> plain_spread() {
  Graph graph = linear_head(torch::tensor({{1.0F, 0.0F}}), torch::zeros({1}));
  graph.initializers["s"] = torch::tensor({{0.0F, 1.0F}});
  graph.nodes.push_back(make_node("Gemm", {"x", "s"}, {kSpreadOutput}, {{"transB", int64_t{1}}}));
  graph.outputs.push_back(make_info(kSpreadOutput, {kDynamic, 1}));
  return network_of(graph);
}

TEST(Spread, DividesTheDistanceByTheSpread) {
  const auto score = make_score(SpreadOptions{}, plain_spread());
  const torch::Tensor v = torch::tensor({{1.0F, 2.0F}, {1.0F, 0.5F}, {1.0F, 0.0F}, {1.0F, -3.0F}});
  const torch::Tensor y = torch::tensor({{4.0}, {4.0}, {4.0}, {1.0}}, torch::kDouble);
  EXPECT_THAT(score->score(v, y), testing::ElementsAre(1.5, 6, kForever, 0));
  const Regions regions = score->region(v, 2.0);
  EXPECT_TRUE(regions.lower.equal(torch::tensor({{-3.0}, {0.0}, {1.0}, {1.0}}, torch::kDouble)));
  EXPECT_TRUE(regions.upper.equal(torch::tensor({{5.0}, {2.0}, {1.0}, {1.0}}, torch::kDouble)));
  EXPECT_TRUE((region_lengths(score->region(v, -1.0)) == 0).all().item<bool>());
}

TEST(Spread, SaysWhichOutputIsMissingOrHasTheWrongSize) {
  const auto bare = network_of(linear_head(torch::ones({1, 2}), torch::zeros({1})));
  EXPECT_THROW(make_score(SpreadOptions{}, bare), Error);
  Graph graph = linear_head(torch::ones({1, 2}), torch::zeros({1}));
  Random random(1);
  add_linear_output(random, graph, kSpreadOutput, 2, "Exp");
  const auto score = make_score(SpreadOptions{}, network_of(graph));
  try {
    score->region(torch::zeros({1, 2}), 1.0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("has 2 numbers per row, the prediction 1"));
  }
}

// A network with heads still has one answer, and scores that need no head see none.
TEST(HeadOutputs, AreNotTheNetworksAnswer) {
  Random random(2);
  Graph graph = wild_feature_heads(random, 2, 5);
  graph.metadata["kept"] = "yes";
  const ScoreOptions nested;
  const Graph pruned = graph_for_score(graph, nested);
  ASSERT_EQ(pruned.outputs.size(), 1U);
  EXPECT_EQ(pruned.outputs[0].name, "y");
  EXPECT_EQ(pruned.metadata.at("kept"), "yes");
  EXPECT_LT(pruned.nodes.size(), graph.nodes.size());
  EXPECT_FALSE(pruned.initializers.contains(std::string(kSpreadOutput) + "_w"));
  EXPECT_EQ(graph_for_score(graph, DensityOptions{}).outputs.size(), 2U);
  EXPECT_EQ(without_heads(graph).outputs.size(), 1U);
  EXPECT_NO_THROW(make_score(ResidualOptions{}, network_of(graph)));
}

}  // namespace
}  // namespace fcp
