// Heads whose rows leave the first axis, and heads past whose cut a mask is carried.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/nn/graph/carry.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/graph/inspect.h"
#include "fcp/nn/graph/rows_first.h"

#include "tests/bounds/soundness.h"
#include "tests/nn/graphs.h"

namespace fcp {
namespace {

torch::Tensor integers(const std::vector<int64_t>& values) {
  return torch::tensor(values, torch::kLong);
}

std::map<std::string, Attribute> order(std::vector<int64_t> axes) { return {{"perm", axes}}; }

// Attention of two heads as torch writes it for tokens [N, 3, 4]: [T, N, 4], then [N·2, T, 2].
Graph tokens_first() {
  Graph graph;
  graph.inputs = {make_info("x", {kDynamic, 3, 4})};
  graph.outputs = {make_info("y", {kDynamic, 2})};
  for (const char* name : {"wq", "wk", "wv"}) graph.initializers[name] = torch::randn({4, 4}) * 0.5;
  graph.initializers["wy"] = torch::randn({2, 4});
  graph.initializers["by"] = torch::randn({2});
  graph.initializers["scale"] = torch::rand({4}) + 0.5;
  graph.initializers["bias"] = torch::randn({4});
  graph.initializers["heads"] = integers({3, -1, 2});
  graph.initializers["whole"] = integers({3, -1, 4});
  graph.initializers["first"] = torch::tensor(int64_t{0});
  graph.nodes.push_back(make_node("LayerNormalization", {"x", "scale", "bias"}, {"n"}));
  graph.nodes.push_back(make_node("Transpose", {"n"}, {"t"}, order({1, 0, 2})));
  for (const std::string part : {"q", "k", "v"}) {
    graph.nodes.push_back(make_node("MatMul", {"t", "w" + part}, {part}));
    graph.nodes.push_back(make_node("Reshape", {part, "heads"}, {part + "h"}));
    const bool keys = part == "k";
    graph.nodes.push_back(
        make_node("Transpose", {part + "h"}, {part + "t"},
                  order(keys ? std::vector<int64_t>{1, 2, 0} : std::vector<int64_t>{1, 0, 2})));
  }
  graph.nodes.push_back(make_node("MatMul", {"qt", "kt"}, {"scores"}));
  graph.nodes.push_back(make_node("Softmax", {"scores"}, {"shares"}, {{"axis", int64_t{2}}}));
  graph.nodes.push_back(make_node("MatMul", {"shares", "vt"}, {"mixed"}));
  graph.nodes.push_back(make_node("Transpose", {"mixed"}, {"mt"}, order({1, 0, 2})));
  graph.nodes.push_back(make_node("Reshape", {"mt", "whole"}, {"m"}));
  graph.nodes.push_back(make_node("Transpose", {"m"}, {"back"}, order({1, 0, 2})));
  graph.nodes.push_back(make_node("Add", {"back", "x"}, {"sum"}));
  graph.nodes.push_back(make_node("Gather", {"sum", "first"}, {"token"}, {{"axis", int64_t{1}}}));
  graph.nodes.push_back(make_node("Gemm", {"token", "wy", "by"}, {"y"}, {{"transB", int64_t{1}}}));
  return graph;
}

TEST(MovedRows, TheSameAnswersWithRowsFirst) {
  torch::manual_seed(51);
  const Network head(tokens_first());
  ASSERT_TRUE(moves_rows(head).has_value());
  const torch::Tensor x = torch::randn({5, 3, 4});
  const Network first(rows_first(head, x.narrow(0, 0, 1)));
  EXPECT_FALSE(moves_rows(first).has_value());
  EXPECT_TRUE(torch::allclose(first.forward(x), head.forward(x), 1e-5, 1e-6));
}

TEST(MovedRows, BoundsHold) {
  torch::manual_seed(52);
  check_soundness({"tokens first", tokens_first()}, 2, {6, 1, 0.05});
}

TEST(MovedRows, LinearBoundsAreTighter) {
  torch::manual_seed(53);
  const auto head = head_of(tokens_first());
  const Ball ball = {torch::randn({3, 3, 4}), torch::full({3}, 0.01), Norm::kInf, {}};
  const auto width = [&](BoundMethod method) {
    BoundOptions options;
    options.method = method;
    const Range range = make_bounds(head, options)->ranges(ball)[0];
    return (range.upper - range.lower).mean().item<double>();
  };
  EXPECT_LT(width(BoundMethod::kCrown), 0.5 * width(BoundMethod::kIbp));
}

// GatherElements of the tokens before the rows has no form with rows first.
Graph with_node_that_stays() {
  Graph graph = tokens_first();
  graph.initializers["where"] = integers({0, 1, 2, 3}).view({1, 1, 4}).repeat({3, 1, 1});
  for (Node& node : graph.nodes) {
    if (node.outputs[0] == "q") node.inputs[0] = "moved";
  }
  graph.nodes.insert(graph.nodes.begin() + 2, make_node("GatherElements", {"t", "where"}, {"moved"},
                                                        {{"axis", int64_t{2}}}));
  return graph;
}

TEST(MovedRows, InspectSaysWhichBoundsTheHeadHas) {
  torch::manual_seed(57);
  const auto bounds_of_cut = [](const Graph& graph, const std::string& tensor) {
    for (const CutReport& report : inspect(graph).cuts) {
      if (report.tensor == tensor) return report.bounds;
    }
    return std::string("no such cut");
  };
  EXPECT_EQ(bounds_of_cut(tokens_first(), "x"), "linear");
  EXPECT_EQ(bounds_of_cut(with_node_that_stays(), "x"), "ibp");
  EXPECT_EQ(bounds_of_cut(with_node_that_stays(), "token"), "linear");
}

TEST(MovedRows, NamesANodeItCannotMove) {
  const Network head(with_node_that_stays());
  try {
    rows_first(head, torch::randn({1, 3, 4}));
    FAIL() << "moved a GatherElements";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("moved_node"), std::string::npos) << error.what();
  }
}

// Rows of tokens [3, 2] and three flags: h = x·w + b is followed by one round of attention that the
// flags mask.
Graph masked_network() {
  Graph graph;
  graph.inputs = {make_info("rows", {kDynamic, 9})};
  graph.outputs = {make_info("y", {kDynamic, 2})};
  graph.initializers["tokens"] = integers({0, 1, 2, 3, 4, 5});
  graph.initializers["flags"] = integers({6, 7, 8});
  graph.initializers["token_shape"] = integers({-1, 3, 2});
  graph.initializers["mask_shape"] = integers({-1, 1, 3});
  graph.initializers["w"] = torch::randn({2, 2});
  graph.initializers["b"] = torch::randn({2});
  graph.initializers["wy"] = torch::randn({2, 2});
  graph.initializers["zero"] = torch::tensor(0.0f);
  graph.initializers["never"] = torch::tensor(-1e4f);
  graph.initializers["last"] = torch::tensor(int64_t{-1});
  const std::map<std::string, Attribute> columns = {{"axis", int64_t{1}}};
  graph.nodes = {make_node("Gather", {"rows", "tokens"}, {"flat"}, columns),
                 make_node("Reshape", {"flat", "token_shape"}, {"x"}),
                 make_node("Gather", {"rows", "flags"}, {"given"}, columns),
                 make_node("Reshape", {"given", "mask_shape"}, {"flag"}),
                 make_node("Greater", {"flag", "zero"}, {"seen"}),
                 make_node("Where", {"seen", "zero", "never"}, {"mask"}),
                 make_node("MatMul", {"x", "w"}, {"product"}),
                 make_node("Add", {"product", "b"}, {"h"}),
                 make_node("Transpose", {"h"}, {"turned"}, order({0, 2, 1})),
                 make_node("MatMul", {"h", "turned"}, {"scores"}),
                 make_node("Add", {"scores", "mask"}, {"masked"}),
                 make_node("Softmax", {"masked"}, {"shares"}, {{"axis", int64_t{-1}}}),
                 make_node("MatMul", {"shares", "h"}, {"mixed"}),
                 make_node("Gather", {"mixed", "last"}, {"token"}, columns),
                 make_node("MatMul", {"token", "wy"}, {"y"})};
  return graph;
}

// The same with the flags themselves behind the cut.
Graph masked_by_flags() {
  Graph graph = masked_network();
  for (Node& node : graph.nodes) {
    if (node.outputs[0] == "masked")
      node = make_node("Where", {"seen", "scores", "never"}, {"masked"});
  }
  return graph;
}

void check_carried(const Graph& network) {
  EXPECT_TRUE(find_leak(network, "h").has_value());
  const std::optional<CarriedCut> carried = carry_past_cut(network, network, "h");
  ASSERT_TRUE(carried.has_value());
  const CutGraph parts = cut(carried->network, carried->cut);
  const Network whole(network), backbone(parts.backbone);
  const auto head = std::make_shared<const Network>(parts.head);
  torch::Tensor rows = torch::randn({4, 9});
  rows.select(1, 8).fill_(1);  // some token is seen
  const torch::Tensor joint = backbone.forward(rows);
  ASSERT_EQ(joint.sizes(), torch::IntArrayRef({4, 9}));
  EXPECT_TRUE(torch::equal(head->forward(joint), whole.forward(rows)));
  const torch::Tensor scale = torch::tensor(carried->scale, torch::kDouble).to(torch::kFloat);
  EXPECT_EQ(scale.sum().item<double>(), 6);
  for (const double radius : {0.0, 0.05, 0.5}) {
    const Ball ball = {joint, torch::full({4}, radius), Norm::kInf, scale};
    for (const BoundMethod method : kAllMethods) {
      BoundOptions options;
      options.method = method;
      options.iterations = 4;
      const Range range = make_bounds(head, options)->ranges(ball)[0];
      EXPECT_TRUE(range.upper.isfinite().all().item<bool>()) << bound_name(method);
      for (int i = 0; i < 40; ++i) {
        const torch::Tensor move = (torch::rand({4, 9}) * 2 - 1) * scale * radius;
        EXPECT_TRUE(contains(range, head->forward(joint + move))) << bound_name(method);
      }
    }
  }
  const Ball loose = {joint, torch::full({4}, 0.1), Norm::kInf, {}};
  EXPECT_THROW(make_bounds(head)->ranges(loose), Error);
}

TEST(CarriedMask, IsAConstantOfItsRow) {
  torch::manual_seed(54);
  check_carried(masked_network());
  check_carried(masked_by_flags());
}

TEST(CarriedMask, RefusesWhatWasLearned) {
  torch::manual_seed(55);
  Graph graph = masked_network();
  for (Node& node : graph.nodes) {
    if (node.outputs[0] == "mask") node = make_node("MatMul", {"flag", "wm"}, {"mask"});
  }
  graph.initializers["wm"] = torch::randn({3, 3});
  EXPECT_FALSE(carry_past_cut(graph, graph, "h").has_value());
  EXPECT_FALSE(carry_past_cut(graph, graph, "token").has_value());  // separates the graph
}

// Of a file for one row it is not known which axes the rows have.
TEST(CarriedMask, RefusesAFixedNumberOfRows) {
  torch::manual_seed(57);
  Graph graph = masked_network();
  ASSERT_TRUE(carry_past_cut(graph, graph, "h").has_value());
  for (TensorInfo& input : graph.inputs) input.shape[0] = 1;
  EXPECT_FALSE(carry_past_cut(graph, graph, "h").has_value());
}

// The numbers of the flags themselves pass the cut, not whether they are above 0.
TEST(CarriedMask, RefusesRealNumbersOfTheInput) {
  torch::manual_seed(56);
  Graph graph = masked_network();
  for (Node& node : graph.nodes) {
    if (node.outputs[0] == "mask") node = make_node("Mul", {"flag", "never"}, {"mask"});
  }
  EXPECT_FALSE(carry_past_cut(graph, graph, "h").has_value());
}

}  // namespace
}  // namespace fcp
