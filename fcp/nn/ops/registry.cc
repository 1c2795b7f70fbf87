#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/op_traits.h"

namespace fcp {

#define FCP_OPERATOR(domain, name, make, traits, ...) OpPointer make(OpArguments& arguments);
#include "fcp/nn/ops/operators.inc"
#undef FCP_OPERATOR

namespace {

const OpTable<OpFactory>& factories() {
  static const OpTable<OpFactory> all = [] {
    OpTable<OpFactory> made;
#define FCP_OPERATOR(domain, name, make, traits, ...) made[domain][name] = make;
#include "fcp/nn/ops/operators.inc"
#undef FCP_OPERATOR
    return made;
  }();
  return all;
}

bool draws_at_random(const Node& node) {
  static const std::set<std::string> ops = {"Bernoulli",        "Multinomial",
                                            "RandomNormal",     "RandomUniform",
                                            "RandomNormalLike", "RandomUniformLike"};
  return (node.domain.empty() || node.domain == "ai.onnx") && ops.contains(node.op);
}

}  // namespace

std::unique_ptr<Op> make_op(const Node& node, int64_t opset) {
  const std::string domain = node.domain.empty() ? "ai.onnx" : node.domain;
  const OpFactory* make = find_op(factories(), node);
  if (draws_at_random(node)) {
    fail(describe(node), ": draws random numbers, so that a row would get another answer each ",
         "time; export a network whose answer is a function of its input (in PyTorch, call ",
         "model.eval() first)");
  }
  if (make == nullptr) {
    fail(describe(node), ": operator ", node.op, " of domain '", domain,
         "' is not supported; docs/networks.md lists what is");
  }
  OpArguments arguments(node, opset);
  std::unique_ptr<Op> op = (*make)(arguments);
  arguments.finish();
  return op;
}

std::vector<std::string> unsupported_nodes(const Graph& graph) {
  std::vector<std::string> messages;
  std::map<std::string, std::pair<size_t, size_t>> seen;  // operator to message and count
  for (const Node& node : graph.nodes) {
    try {
      make_op(node, graph.opset);
    } catch (const Error& error) {
      const bool known = find_op(factories(), node) != nullptr;
      const std::string key = known ? describe(node) : node.domain + "/" + node.op;
      const auto [entry, fresh] = seen.emplace(key, std::pair(messages.size(), size_t{0}));
      if (fresh) messages.emplace_back(error.what());
      ++entry->second.second;
    }
  }
  for (const auto& [key, entry] : seen) {
    if (entry.second > 1) messages[entry.first] += concat(" (", entry.second, " nodes)");
  }
  return messages;
}

void check_supported(const Graph& graph) {
  const std::vector<std::string> messages = unsupported_nodes(graph);
  std::string text;
  for (const std::string& message : messages) text += (text.empty() ? "" : "; ") + message;
  if (!messages.empty()) fail(text);
}

}  // namespace fcp
