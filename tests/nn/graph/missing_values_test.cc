#include "fcp/nn/graph/missing_values.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "fcp/nn/graph/input_layout.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using Floats = std::vector<float>;
using Integers = std::vector<int64_t>;

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

Node make_ml_node(const std::string& op, std::vector<std::string> inputs,
                  std::vector<std::string> outputs, std::map<std::string, Attribute> attributes) {
  Node node = make_node(op, std::move(inputs), std::move(outputs), std::move(attributes));
  node.domain = "ai.onnx.ml";
  return node;
}

Node make_imputer(const std::string& from, const std::string& to, const Floats& values,
                  float replaced = kNone) {
  return make_ml_node("Imputer", {from}, {to},
                      {{"imputed_value_floats", values}, {"replaced_value_float", replaced}});
}

// One split at column 0.
Node make_tree(const std::string& from, const std::string& to) {
  return make_ml_node("TreeEnsembleRegressor", {from}, {to},
                      {{"n_targets", int64_t{1}},
                       {"nodes_falsenodeids", Integers{2, 0, 0}},
                       {"nodes_featureids", Integers{0, 0, 0}},
                       {"nodes_missing_value_tracks_true", Integers{1, 0, 0}},
                       {"nodes_modes", std::vector<std::string>{"BRANCH_LEQ", "LEAF", "LEAF"}},
                       {"nodes_nodeids", Integers{0, 1, 2}},
                       {"nodes_treeids", Integers{0, 0, 0}},
                       {"nodes_truenodeids", Integers{1, 0, 0}},
                       {"nodes_values", Floats{0.5f, 0, 0}},
                       {"target_ids", Integers{0, 0}},
                       {"target_nodeids", Integers{1, 2}},
                       {"target_treeids", Integers{0, 0}},
                       {"target_weights", Floats{-1, 1}}});
}

Graph make_graph(int64_t columns, std::vector<Node> nodes) {
  Graph graph;
  graph.domains["ai.onnx.ml"] = 3;
  graph.inputs = {make_info("x", {kDynamic, columns})};
  graph.outputs = {make_info("y")};
  graph.nodes = std::move(nodes);
  return graph;
}

TEST(MissingValues, AreTakenByTreesImputersAndLabelEncoders) {
  EXPECT_TRUE(reads_missing(make_graph(3, {make_tree("x", "y")}), "x"));
  EXPECT_THAT(missing_columns(make_graph(3, {make_tree("x", "y")}), "x", {3}), Each(true));
  const Graph imputed =
      make_graph(2, {make_imputer("x", "full", {1, 2}), make_node("Relu", {"full"}, {"y"})});
  EXPECT_THAT(missing_columns(imputed, "x", {2}), Each(true));
  const Graph mapped = make_graph(
      2, {make_ml_node("LabelEncoder", {"x"}, {"code"},
                       {{"keys_floats", Floats{kNone, 1}}, {"values_floats", Floats{0, 3}}}),
          make_node("Relu", {"code"}, {"y"})});
  EXPECT_THAT(missing_columns(mapped, "x", {2}), Each(true));
}

TEST(MissingValues, AreRefusedWhereTheNetworkComputes) {
  const Graph mlp = make_mlp({3, 4, 1});
  EXPECT_FALSE(reads_missing(mlp, "x"));
  EXPECT_THAT(missing_columns(mlp, "x", {3}), Each(false));
  // An imputer of zeros leaves NaN, and so does one whose own value is NaN.
  const Graph zeros = make_graph(2, {make_imputer("x", "y", {1, 2}, 0)});
  EXPECT_THAT(missing_columns(zeros, "x", {2}), Each(false));
  const Graph none = make_graph(2, {make_imputer("x", "y", {1, kNone})});
  EXPECT_THAT(missing_columns(none, "x", {2}), Each(false));
  // Computed with beside the tree, or before it, or given out.
  const Graph beside = make_graph(1, {make_tree("x", "t"), make_node("Add", {"t", "x"}, {"y"})});
  EXPECT_TRUE(reads_missing(beside, "x"));
  EXPECT_THAT(missing_columns(beside, "x", {1}), Each(false));
  EXPECT_THAT(missing_columns(make_graph(2, {make_node("Neg", {"x"}, {"n"}), make_tree("n", "y")}),
                              "x", {2}),
              Each(false));
  Graph shown = make_graph(2, {make_node("Identity", {"x"}, {"same"}), make_tree("same", "y")});
  EXPECT_THAT(missing_columns(shown, "x", {2}), Each(true));
  shown.outputs.push_back(make_info("same"));
  EXPECT_THAT(missing_columns(shown, "x", {2}), Each(false));
}

// Columns 1 and 3 are imputed, column 0 goes to a tree, column 2 into a sum.
TEST(MissingValues, AreFollowedColumnByColumn) {
  Graph graph = make_graph(
      4,
      {make_node("Cast", {"x"}, {"half"}, {{"to", int64_t{10}}}),
       make_node("Cast", {"half"}, {"typed"}, {{"to", int64_t{1}}}),
       make_node("Gather", {"typed", "odd"}, {"pair"}, {{"axis", int64_t{1}}}),
       make_node("Transpose", {"pair"}, {"turned"}, {{"perm", Integers{1, 0}}}),
       make_node("Transpose", {"turned"}, {"back"}, {{"perm", Integers{1, 0}}}),
       make_imputer("back", "full", {5, 6}),
       make_ml_node("ArrayFeatureExtractor", {"x", "first"}, {"column"}, {}),
       make_node("Concat", {"column", "full"}, {"all"}, {{"axis", int64_t{1}}}),
       make_tree("all", "vote"), make_node("Slice", {"x", "from", "to", "axis"}, {"third"}),
       make_node("Shape", {"third"}, {"shape"}), make_node("Reshape", {"third", "shape"}, {"same"}),
       make_node("Add", {"vote", "same"}, {"y"})});
  graph.initializers = {{"odd", torch::tensor(Integers{1, 3})},
                        {"first", torch::tensor(Integers{0})},
                        {"from", torch::tensor(Integers{2})},
                        {"to", torch::tensor(Integers{3})},
                        {"axis", torch::tensor(Integers{1})}};
  EXPECT_THAT(missing_columns(graph, "x", {4}), ElementsAre(true, true, false, true));
  // The same of a file that fixes its number of rows, and of one that says nothing of its shape.
  graph.inputs[0].shape[0] = 2;
  EXPECT_THAT(missing_columns(graph, "x", {4}), ElementsAre(true, true, false, true));
  graph.inputs[0] = make_info("x");
  EXPECT_THAT(missing_columns(graph, "x", {4}), ElementsAre(true, true, false, true));
}

TEST(MissingValues, AreReplacedByIsNanAndWhere) {
  const auto replaced = [](const std::vector<std::string>& choice, bool negated) {
    Graph graph =
        make_graph(2, {make_node("IsNaN", {"x"}, {"gap"}), make_node("Not", {"gap"}, {"there"}),
                       make_node("Where", {negated ? "there" : "gap", choice[0], choice[1]}, {"z"}),
                       make_node("Cast", {"gap"}, {"mark"}, {{"to", int64_t{11}}}),
                       make_node("Cast", {"mark"}, {"single"}, {{"to", int64_t{1}}}),
                       make_node("Add", {"z", "single"}, {"y"})});
    graph.initializers["zero"] = torch::zeros({1});
    return missing_columns(graph, "x", {2});
  };
  EXPECT_THAT(replaced({"zero", "x"}, false), Each(true));
  EXPECT_THAT(replaced({"x", "zero"}, true), Each(true));
  EXPECT_THAT(replaced({"x", "zero"}, false), Each(false));
  EXPECT_THAT(replaced({"zero", "x"}, true), Each(false));
}

// A column may not be missing where that is hidden by another one that is there.
TEST(MissingValues, CountEachForItself) {
  Graph graph = make_graph(
      2, {make_node("Split", {"x"}, {"a", "b"}, {{"axis", int64_t{1}}}),
          make_node("IsNaN", {"a"}, {"gap"}), make_node("Where", {"gap", "b", "a"}, {"z"}),
          make_node("Relu", {"z"}, {"y"})});
  EXPECT_THAT(missing_columns(graph, "x", {2}), ElementsAre(true, false));
  graph.nodes[2] = make_node("Where", {"gap", "zero", "b"}, {"z"});
  graph.initializers["zero"] = torch::zeros({1});
  EXPECT_THAT(missing_columns(graph, "x", {2}), ElementsAre(true, false));
}

TEST(MissingValues, AreFollowedFromPackedInputs) {
  Graph graph = make_graph(2, {make_imputer("x", "full", {1, 2}),
                               make_node("Concat", {"full", "z"}, {"y"}, {{"axis", int64_t{1}}})});
  graph.inputs.push_back(make_info("z", {kDynamic, 1}));
  const Graph packed = pack_inputs(graph, layout_of(graph.inputs, {{2}, {1}}));
  EXPECT_THAT(missing_columns(packed, kRowsInput, {3}), ElementsAre(true, true, false));
  EXPECT_THAT(missing_columns(graph, "x", {2}), Each(true));
  EXPECT_FALSE(reads_missing(graph, "z"));
}

}  // namespace
}  // namespace fcp
