#include "fcp/nn/graph/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::SizeIs;

TEST(Inspect, CountsShapesParametersAndArithmetic) {
  const NetworkReport report = inspect(make_mlp({5, 7, 2}));
  ASSERT_EQ(report.nodes.size(), 3u);
  EXPECT_EQ(report.nodes[0].op, "Gemm");
  EXPECT_THAT(report.nodes[0].shape, Optional(ElementsAre(1, 7)));
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

TEST(Inspect, TakesDimensionsThatTheFileLeavesOpen) {
  Graph graph = make_residual_network();
  graph.inputs[0].shape = {kDynamic, 3, kDynamic, 6};
  const NetworkReport open = inspect(graph);
  ASSERT_EQ(open.notes.size(), 1u);
  EXPECT_THAT(open.notes[0], HasSubstr("input 'x' leaves dimensions open"));
  ASSERT_TRUE(open.nodes[0].shape.has_value());
  EXPECT_EQ((*open.nodes[0].shape)[3], 6);
  const NetworkReport report = inspect(graph, {{"x", {2, 3, 8, 6}}});
  EXPECT_THAT(report.nodes[0].shape, Optional(ElementsAre(2, 4, 8, 6)));
  EXPECT_THAT(report.notes, IsEmpty());
  EXPECT_THROW(inspect(graph, {{"z", {1}}}), Error);
}

// The width of an open input is that of the layer that reads it.
TEST(Inspect, TakesTheWidthOfTheFirstLayer) {
  Graph graph = make_mlp({5, 7, 2});
  graph.inputs[0].shape = {kDynamic, kDynamic};
  const NetworkReport report = inspect(graph);
  EXPECT_THAT(report.cuts.at(0).shape, Optional(ElementsAre(1, 5)));
  EXPECT_THAT(report.nodes[2].shape, Optional(ElementsAre(1, 2)));
}

TEST(Inspect, ShowsWhatDoesNotRunOnAnExampleRow) {
  Graph graph = make_mlp({5, 7, 2});
  graph.inputs[0] = make_info("x");
  const NetworkReport report = inspect(graph);
  ASSERT_EQ(report.nodes.size(), 3u);
  EXPECT_EQ(report.nodes[1].shape, std::nullopt);
  EXPECT_EQ(report.nodes[0].parameters, 5 * 7 + 7);
  EXPECT_EQ(report.cuts.size(), 3u);
  EXPECT_THAT(report.notes, ElementsAre(HasSubstr("does not say the shape")));
}

// As the classifiers of BART and T5 do, which take the token that ends the sentence: a row of
// zeros has none.
TEST(Inspect, FindsTokensThatTheNetworkLooksFor) {
  const auto classifier = [](int64_t token) {
    Graph graph;
    graph.inputs = {make_info("ids", {kDynamic, kDynamic})};
    graph.inputs[0].type = ElementType::kInt64;
    graph.outputs = {make_info("y")};
    graph.initializers = {{"token", torch::tensor(token)},
                          {"table", torch::randn({40, 3})},
                          {"shape", torch::tensor(std::vector<int64_t>{1, -1, 3})},
                          {"last", torch::tensor(int64_t{-1})},
                          {"w", torch::randn({3, 2})}};
    graph.nodes = {make_node("Gather", {"table", "ids"}, {"words"}),
                   make_node("Equal", {"ids", "token"}, {"ends"}),
                   make_node("NonZero", {"ends"}, {"columns"}),
                   make_node("Transpose", {"columns"}, {"places"}),
                   make_node("GatherND", {"words", "places"}, {"found"}),
                   make_node("Reshape", {"found", "shape"}, {"by_row"}),
                   make_node("Gather", {"by_row", "last"}, {"one"}, {{"axis", int64_t{1}}}),
                   make_node("MatMul", {"one", "w"}, {"y"})};
    return graph;
  };
  const NetworkReport found = inspect(classifier(2));
  EXPECT_THAT(found.nodes.back().shape, Optional(ElementsAre(1, 2)));
  const NetworkReport lost = inspect(classifier(7));
  EXPECT_THAT(lost.nodes[0].shape, Optional(SizeIs(3)));
  EXPECT_EQ(lost.nodes.back().shape, std::nullopt);
  EXPECT_THAT(lost.notes, ElementsAre(HasSubstr("does not run on the example row")));
}

// A shape that the head takes from the input, and that does not follow from the rows alone, makes
// a tensor no cut, not the network unreadable.
TEST(Inspect, LeavesOutCutsWhoseHeadNeedsOtherShapes) {
  Graph graph = make_mlp({4, 4, 4});
  graph.initializers["one"] = torch::tensor(std::vector<int64_t>{1});
  graph.nodes.push_back(make_node("Unsqueeze", {"y", "one"}, {"tall"}));
  graph.nodes.push_back(make_node("Shape", {"z1"}, {"size"}));
  graph.nodes.push_back(make_node("Mul", {"size", "size"}, {"square"}));
  graph.nodes.push_back(make_node("ConstantOfShape", {"square"}, {"zeros"}));
  graph.nodes.push_back(make_node("ReduceSum", {"zeros"}, {"nothing"}, {{"keepdims", int64_t{0}}}));
  graph.nodes.push_back(make_node("Transpose", {"tall"}, {"turned"}));
  graph.nodes.push_back(make_node("Add", {"turned", "nothing"}, {"out"}));
  graph.outputs = {make_info("out")};
  const NetworkReport report = inspect(graph);
  EXPECT_EQ(report.nodes.back().output, "out");
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
