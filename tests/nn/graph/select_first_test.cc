// Tokens taken before the layer that reads them: the same answers, and a tensor to cut at.
#include "fcp/nn/graph/select_first.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "fcp/nn/graph/cut.h"
#include "fcp/nn/runtime/network.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

// Tokens x [N, 4, 3] and a number k of the token that answers, side by side; the answer by Gather
// of what is flat, as the old exporter writes it, or by GatherND, as the new one does.
Graph token_classifier(bool flat, bool biased) {
  Graph graph;
  graph.inputs = {make_info("rows", {kDynamic, 13})};
  graph.outputs = {make_info("y", {kDynamic, 2})};
  graph.initializers["tokens"] = torch::arange(12, torch::kLong);
  graph.initializers["index"] = torch::tensor(int64_t{12});
  graph.initializers["shape"] = torch::tensor(std::vector<int64_t>{-1, 4, 3}, torch::kLong);
  graph.initializers["w"] = torch::randn({3, 2});
  graph.initializers["b"] = torch::randn({2});
  graph.initializers["zero"] = torch::tensor(int64_t{0});
  graph.initializers["one"] = torch::tensor(int64_t{1});
  graph.initializers["four"] = torch::tensor(int64_t{4});
  graph.initializers["axis"] = torch::tensor(std::vector<int64_t>{-1}, torch::kLong);
  const std::map<std::string, Attribute> columns = {{"axis", int64_t{1}}};
  graph.nodes = {make_node("Gather", {"rows", "tokens"}, {"flat_tokens"}, columns),
                 make_node("Reshape", {"flat_tokens", "shape"}, {"x"}),
                 make_node("Tanh", {"x"}, {"h"}),
                 make_node("Gather", {"rows", "index"}, {"given"}, columns),
                 make_node("Cast", {"given"}, {"k"}, {{"to", int64_t{7}}}),
                 make_node("Shape", {"rows"}, {"sizes"}),
                 make_node("Gather", {"sizes", "zero"}, {"count"}),
                 make_node("Range", {"zero", "count", "one"}, {"places"}),
                 make_node("MatMul", {"h", "w"}, {"product"})};
  if (biased) graph.nodes.push_back(make_node("Add", {"product", "b"}, {"layer"}));
  const std::string layer = biased ? "layer" : "product";
  if (flat) {
    graph.nodes.push_back(make_node("Flatten", {layer}, {"all"}, {{"axis", int64_t{2}}}));
    graph.nodes.push_back(make_node("Mul", {"places", "four"}, {"starts"}));
    graph.nodes.push_back(make_node("Add", {"starts", "k"}, {"which"}));
    graph.nodes.push_back(make_node("Gather", {"all", "which"}, {"y"}));
  } else {
    graph.nodes.push_back(make_node("Unsqueeze", {"places", "axis"}, {"rows_column"}));
    graph.nodes.push_back(make_node("Unsqueeze", {"k", "axis"}, {"token_column"}));
    graph.nodes.push_back(
        make_node("Concat", {"rows_column", "token_column"}, {"which"}, {{"axis", int64_t{-1}}}));
    graph.nodes.push_back(make_node("GatherND", {layer, "which"}, {"y"}));
  }
  return graph;
}

TEST(SelectFirst, GivesTheSameAnswersAndACut) {
  torch::manual_seed(61);
  torch::Tensor rows = torch::randn({5, 13});
  rows.select(1, 12).copy_(torch::tensor({3.0f, 0.0f, 2.0f, 1.0f, 3.0f}));
  for (const bool flat : {true, false}) {
    for (const bool biased : {true, false}) {
      const Graph given = token_classifier(flat, biased), changed = select_first(given);
      const Network before(given), after(changed);
      EXPECT_TRUE(torch::allclose(after.forward(rows), before.forward(rows), 1e-6, 1e-6));
      const std::string token = "y/selected_first_token";
      const std::vector<std::string> cuts = valid_cuts(changed);
      EXPECT_NE(std::find(cuts.begin(), cuts.end(), token), cuts.end()) << flat << biased;
      EXPECT_EQ(valid_cuts(given), std::vector<std::string>{"rows"});
      EXPECT_EQ(Network(cut(changed, token).backbone).forward(rows).sizes(),
                torch::IntArrayRef({5, 3}));
    }
  }
}

TEST(SelectFirst, LeavesASelectionAlongTheLayersAxis) {
  torch::manual_seed(62);
  Graph graph = token_classifier(false, false);
  graph.initializers["class"] = torch::tensor(int64_t{1});
  graph.nodes.back().outputs = {"y"};
  for (Node& node : graph.nodes) {
    if (node.outputs[0] == "which") node.inputs = {"rows_column", "token_column", "class_column"};
  }
  graph.nodes.insert(graph.nodes.end() - 2,
                     make_node("Mul", {"token_column", "zero"}, {"class_column"}));
  EXPECT_EQ(select_first(graph).nodes.size(), graph.nodes.size());
  Graph early = token_classifier(true, false);
  for (Node& node : early.nodes) {
    if (node.op == "Flatten") node.attributes["axis"] = int64_t{1};
  }
  EXPECT_EQ(select_first(early).nodes.size(), early.nodes.size());
}

}  // namespace
}  // namespace fcp
