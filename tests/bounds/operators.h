// Operators by themselves, as heads, for the tests of bounds.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <torch/types.h>

#include "tests/bounds/heads.h"

namespace fcp {

using Ints = std::vector<int64_t>;

inline torch::Tensor ints(const Ints& values) { return torch::tensor(values, torch::kLong); }

// x joined with a copy of it that went through Tanh, so that two different tensors meet.
inline Graph joined(const std::string& op,
                    const std::map<std::string, Attribute>& attributes = {}) {
  Graph graph = single(op, {3, 4}, attributes);
  graph.nodes.insert(graph.nodes.begin(), make_node("Tanh", {"x"}, {"t"}));
  graph.nodes[1].inputs = {"x", "t"};
  return graph;
}

// Operators whose planes go along their tangents.
inline std::vector<NamedGraph> normalizing_cases() {
  std::vector<NamedGraph> cases;
  const torch::Tensor scale = torch::randn({6}), shift = torch::randn({6});
  cases.push_back({"LayerNormalization",
                   single("LayerNormalization", {3, 6}, {}, {{"a", scale}, {"b", shift}})});
  cases.push_back({"LayerNormalization of one number",  // 0, but for rounding that 1/√ε enlarges
                   single("LayerNormalization", {40, 1}, {}, {{"a", torch::randn({1})}})});
  cases.push_back({"LayerNormalization of two axes",
                   single("LayerNormalization", {2, 6}, {{"axis", int64_t{1}}},
                          {{"a", torch::randn({2, 6})}})});
  cases.push_back({"RMSNormalization", single("RMSNormalization", {3, 6}, {}, {{"a", scale}}, 23)});
  cases.push_back(
      {"GroupNormalization", single("GroupNormalization", {6, 4}, {{"num_groups", int64_t{2}}},
                                    {{"a", scale}, {"b", shift}}, 21)});
  cases.push_back({"InstanceNormalization",
                   single("InstanceNormalization", {6, 4}, {}, {{"a", scale}, {"b", shift}})});
  for (const char* op : {"ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp"}) {
    cases.push_back({op, single(op, {3, 4}, {{"axes", Ints{2}}})});
  }
  return cases;
}

// Attention of x, its keys and values being other functions of x; and rotations of x.
inline std::vector<NamedGraph> attention_cases() {
  std::vector<NamedGraph> cases;
  const auto attention = [&](const std::string& name, std::map<std::string, Attribute> more,
                             const torch::Tensor& mask = {}) {
    more["q_num_heads"] = more["kv_num_heads"] = int64_t{2};
    Graph graph = single("Attention", {3, 4}, more, {}, 23);
    graph.nodes.insert(graph.nodes.begin(), make_node("Tanh", {"x"}, {"t"}));
    graph.nodes[1].inputs = {"x", "t", "x"};
    if (mask.defined()) {
      graph.initializers["mask"] = mask;
      graph.nodes[1].inputs.push_back("mask");
    }
    cases.push_back({name, graph});
  };
  attention("Attention", {});
  attention("Attention, causal", {{"is_causal", int64_t{1}}, {"scale", 0.9f}});
  torch::Tensor seen = torch::ones({3, 3}, torch::kBool);
  seen.select(1, 2).fill_(false);
  attention("Attention, masked", {{"softcap", 1.5f}}, seen);
  const torch::Tensor angle = torch::randn({1, 3, 2});
  for (const int64_t interleaved : {0, 1}) {
    cases.push_back({concat("RotaryEmbedding ", interleaved),
                     single("RotaryEmbedding", {2, 3, 6},
                            {{"interleaved", interleaved}, {"rotary_embedding_dim", int64_t{4}}},
                            {{"a", angle.cos()}, {"b", angle.sin()}}, 23)});
  }
  return cases;
}

inline std::vector<NamedGraph> smooth_cases() {
  std::vector<NamedGraph> cases = normalizing_cases();
  for (NamedGraph& each : attention_cases()) cases.push_back(std::move(each));
  cases.push_back({"Mul of two", joined("Mul")});
  cases.push_back({"Softmax", single("Softmax", {5})});
  cases.push_back({"Softmax of the first axis", single("Softmax", {4, 2}, {{"axis", int64_t{1}}})});
  cases.push_back({"Softmax of old", single("Softmax", {2, 5}, {}, {}, 11)});
  cases.push_back({"LogSoftmax", single("LogSoftmax", {5})});
  cases.push_back({"Div of two", joined("Div")});
  Graph inverse = single("Div", {4}, {}, {{"c", torch::randn({4})}});
  inverse.nodes[0].inputs = {"c", "x"};
  cases.push_back({"Div of a constant", inverse});
  Graph unit = single("ReduceL2", {3, 4}, {{"axes", Ints{2}}});
  unit.nodes[0].outputs = {"length"};
  unit.nodes.push_back(make_node("Div", {"x", "length"}, {"y"}));
  cases.push_back({"x by its length", unit});
  Graph positive = single("ReduceLogSum", {3, 4}, {{"axes", Ints{2}}});
  positive.nodes.insert(positive.nodes.begin(), make_node("Exp", {"x"}, {"e"}));
  positive.nodes[1].inputs = {"e"};
  cases.push_back({"ReduceLogSum", positive});
  for (const char* op : {"Sin", "Cos"}) cases.push_back({op, single(op, {6})});
  return cases;
}

}  // namespace fcp
