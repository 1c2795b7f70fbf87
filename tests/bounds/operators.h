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

inline std::vector<NamedGraph> smooth_cases() {
  std::vector<NamedGraph> cases = normalizing_cases();
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
