#include "fcp/nn/graph/graph.h"

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include "fcp/base/error.h"

namespace fcp {

std::string describe(const Node& node) {
  if (!node.name.empty()) return concat(node.op, " node '", node.name, "'");
  const std::string output = node.outputs.empty() ? "nothing" : node.outputs.front();
  return concat(node.op, " node making '", output, "'");
}

namespace {

// Maps each tensor that a node makes to that node's index; a tensor made twice is an error.
std::map<std::string, size_t> producers(const Graph& graph) {
  std::set<std::string> given;
  for (const TensorInfo& input : graph.inputs) {
    if (!given.insert(input.name).second) fail("input '", input.name, "' appears twice");
    if (graph.initializers.contains(input.name)) {
      fail("'", input.name, "' is both an input and an initializer");
    }
  }
  std::map<std::string, size_t> made_by;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const std::string& output : graph.nodes[i].outputs) {
      if (output.empty()) continue;
      if (given.contains(output) || graph.initializers.contains(output) ||
          !made_by.emplace(output, i).second) {
        fail(describe(graph.nodes[i]), ": makes '", output, "', which exists already");
      }
    }
  }
  return made_by;
}

}  // namespace

void sort_and_check(Graph& graph) {
  const std::map<std::string, size_t> made_by = producers(graph);
  std::set<std::string> given;
  for (const TensorInfo& input : graph.inputs) given.insert(input.name);
  const auto is_given = [&](const std::string& name) {
    return given.contains(name) || graph.initializers.contains(name);
  };

  // Kahn's algorithm, first come first served, so that an order that is right already stays.
  const size_t count = graph.nodes.size();
  std::vector<size_t> missing(count, 0);
  std::vector<std::vector<size_t>> users(count);
  for (size_t i = 0; i < count; ++i) {
    for (const std::string& input : graph.nodes[i].inputs) {
      if (input.empty() || is_given(input)) continue;
      const auto producer = made_by.find(input);
      if (producer == made_by.end()) {
        fail(describe(graph.nodes[i]), ": needs '", input, "', which nothing makes");
      }
      users[producer->second].push_back(i);
      ++missing[i];
    }
  }
  std::set<size_t> ready;
  for (size_t i = 0; i < count; ++i) {
    if (missing[i] == 0) ready.insert(i);
  }
  std::vector<Node> sorted;
  sorted.reserve(count);
  while (!ready.empty()) {
    const size_t next = *ready.begin();
    ready.erase(ready.begin());
    for (const size_t user : users[next]) {
      if (--missing[user] == 0) ready.insert(user);
    }
    sorted.push_back(std::move(graph.nodes[next]));
  }
  for (size_t i = 0; i < count; ++i) {
    if (missing[i] > 0) fail(describe(graph.nodes[i]), ": is part of a cycle");
  }
  graph.nodes = std::move(sorted);

  if (graph.outputs.empty()) fail("the network has no output");
  for (const TensorInfo& output : graph.outputs) {
    if (!made_by.contains(output.name) && !is_given(output.name)) {
      fail("output '", output.name, "' is made by no node");
    }
  }
}

}  // namespace fcp
