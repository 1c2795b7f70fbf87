// An Attention taken apart computes the same; what cannot be taken apart stays.
#include "fcp/nn/graph/lower_attention.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

struct AttentionCase {
  std::string name;
  std::vector<int64_t> q, k;  // shapes; that of v is k's
  std::map<std::string, Attribute> attributes;
  torch::Tensor mask;
};

Graph attention_graph(const AttentionCase& made) {
  Graph graph;
  graph.opset = 23;
  const auto open = [](std::vector<int64_t> shape) {
    shape[0] = kDynamic;
    return shape;
  };
  graph.inputs = {make_info("q", open(made.q)), make_info("k", open(made.k)),
                  make_info("v", open(made.k))};
  graph.outputs = {make_info("y")};
  std::vector<std::string> inputs = {"q", "k", "v"};
  if (made.mask.defined()) {
    graph.initializers["mask"] = made.mask;
    inputs.push_back("mask");
  }
  graph.nodes = {make_node("Attention", inputs, {"y"}, made.attributes)};
  return graph;
}

std::map<std::string, Attribute> heads(int64_t queries, int64_t keys) {
  return {{"q_num_heads", queries}, {"kv_num_heads", keys}};
}

TEST(LowerAttention, ComputesTheSame) {
  torch::manual_seed(1);
  torch::Tensor seen = torch::ones({4, 5}, torch::kBool);
  seen.select(1, 4).fill_(false);
  std::map<std::string, Attribute> causal = heads(2, 2), capped = heads(2, 2), scaled = heads(2, 2);
  causal["is_causal"] = int64_t{1};
  capped["softcap"] = 0.7f;
  scaled["scale"] = 2.0f;
  const std::vector<AttentionCase> cases = {
      {"by heads", {2, 3, 4, 6}, {2, 3, 5, 6}, {}, {}},
      {"flat", {2, 4, 6}, {2, 5, 6}, heads(2, 2), {}},
      {"grouped", {2, 4, 12}, {2, 5, 6}, heads(4, 2), {}},
      {"mask", {2, 4, 6}, {2, 5, 6}, heads(2, 2), torch::randn({4, 5})},
      {"mask of truths", {2, 4, 6}, {2, 5, 6}, heads(2, 2), seen},
      {"causal", {2, 4, 6}, {2, 5, 6}, causal, {}},
      {"capped", {2, 4, 6}, {2, 5, 6}, capped, {}},
      {"scaled", {2, 4, 6}, {2, 5, 6}, scaled, {}},
  };
  for (const AttentionCase& made : cases) {
    const auto whole = std::make_shared<const Network>(attention_graph(made));
    const auto parts = with_attention_lowered(whole);
    for (const Step& step : parts->steps()) EXPECT_NE(step.node.op, "Attention") << made.name;
    const Tensors inputs = {torch::randn(made.q), torch::randn(made.k), torch::randn(made.k)};
    const torch::Tensor expected = whole->run(inputs)[0], found = parts->run(inputs)[0];
    EXPECT_EQ(found.sizes(), expected.sizes()) << made.name;
    EXPECT_TRUE(torch::allclose(found, expected, 1e-5, 1e-6)) << made.name;
  }
}

TEST(LowerAttention, LeavesWhatItCannotSay) {
  const AttentionCase plain = {"", {1, 4, 6}, {1, 5, 6}, heads(2, 2), {}};
  Graph scores = attention_graph(plain);
  scores.nodes[0].outputs = {"y", "", "", "scores"};
  EXPECT_FALSE(can_lower(scores.nodes[0], scores.initializers));
  Graph past = attention_graph(plain);
  past.nodes[0].inputs.insert(past.nodes[0].inputs.end(), {"", "k", "v"});
  EXPECT_FALSE(can_lower(past.nodes[0], past.initializers));
  AttentionCase blind = plain;
  blind.mask = torch::zeros({4, 5}, torch::kBool);
  const Graph nothing_seen = attention_graph(blind);
  EXPECT_FALSE(can_lower(nothing_seen.nodes[0], nothing_seen.initializers));
  Graph varying = attention_graph(plain);
  varying.nodes[0].inputs.push_back("q");
  EXPECT_FALSE(can_lower(varying.nodes[0], varying.initializers));
  EXPECT_TRUE(can_lower(attention_graph(plain).nodes[0], {}));
}

}  // namespace
}  // namespace fcp
