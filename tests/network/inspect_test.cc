#include "fcp/network/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

#include "tests/network/graphs.h"

namespace fcp {
namespace {

TEST(Inspect, CountsShapesParametersAndArithmetic) {
  const NetworkReport report = inspect(make_mlp({5, 7, 2}));
  ASSERT_EQ(report.nodes.size(), 3u);
  EXPECT_EQ(report.nodes[0].op, "Gemm");
  EXPECT_THAT(report.nodes[0].shape, testing::ElementsAre(1, 7));
  EXPECT_EQ(report.nodes[0].parameters, 5 * 7 + 7);
  EXPECT_EQ(report.nodes[0].flops, 2 * 5 * 7);
  EXPECT_EQ(report.parameters, 5 * 7 + 7 + 7 * 2 + 2);
  EXPECT_EQ(report.layers, 2u);
  ASSERT_EQ(report.cuts.size(), 3u);
  EXPECT_EQ(report.cuts[2].tensor, "h1");
  EXPECT_EQ(report.cuts[2].size, 7);
  EXPECT_EQ(report.cuts[2].head_layers, 1u);
  EXPECT_EQ(report.cuts[0].head_layers, 2u);
}

TEST(Inspect, AsksForDimensionsTheFileLeavesOpen) {
  Graph graph = make_residual_network();
  graph.inputs[0].shape = {kDynamic, 3, kDynamic, 6};
  try {
    inspect(graph);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::StartsWith("input 'x': dimension 2 is not fixed"));
  }
  const NetworkReport report = inspect(graph, {{"x", {2, 3, 8, 6}}});
  EXPECT_THAT(report.nodes[0].shape, testing::ElementsAre(2, 4, 8, 6));
  EXPECT_THROW(inspect(graph, {{"z", {1}}}), Error);
}

// Time grows with the nodes, not with their square.
TEST(Inspect, ThousandsOfNodesTakeSeconds) {
  const NetworkReport report = inspect(make_mlp(std::vector<int64_t>(2001, 2)));
  EXPECT_EQ(report.nodes.size(), 3999u);
  ASSERT_EQ(report.cuts.size(), 3999u);
  EXPECT_EQ(report.cuts[3998].head_layers, 1u);
  EXPECT_EQ(report.cuts[0].head_layers, 2000u);
}

TEST(Inspect, ListsAllThatIsNotSupported) {
  Graph graph = make_mlp({3, 4, 4, 1});
  graph.nodes[1].op = "Frobnicate";
  graph.nodes[3].op = "Defenestrate";
  try {
    inspect(graph);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("Frobnicate"),
                                             testing::HasSubstr("Defenestrate")));
  }
}

// The head's own nodes count, not the backbone's.
TEST(Inspect, BoundsOfACutAreTheWeakestOfItsHead) {
  Graph graph = make_mlp({3, 4, 4, 1});
  graph.nodes[1] = make_node("Hardmax", {"z1"}, {"h1"});
  const NetworkReport report = inspect(graph);
  ASSERT_EQ(report.cuts.size(), 5u);
  EXPECT_EQ(report.cuts[1].bounds, "none");
  EXPECT_EQ(report.cuts[2].bounds, "linear");
}

}  // namespace
}  // namespace fcp
