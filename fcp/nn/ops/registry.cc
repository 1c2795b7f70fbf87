#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/op_traits.h"
#include "fcp/nn/ops/output_bytes.h"
#include "fcp/nn/ops/output_types.h"

namespace fcp {

#define FCP_OPERATOR(domain, name, make, traits, ...) OpPointer make(OpArguments& arguments);
#include "fcp/nn/ops/operators.inc"
#undef FCP_OPERATOR

namespace {

struct OpEntry {
  OpFactory make = nullptr;
  OpFacts facts;
};
using OpTable = std::map<std::string, OpEntry>;

// By domain and name.
const std::map<std::string, OpTable>& tables() {
  static const std::map<std::string, OpTable> all = [] {
    using Range = OpFacts::Range;
    using Axes = OpFacts::Axes;
    std::map<std::string, OpTable> made;
#define FCP_OPERATOR(domain, name, make, known, ...) \
  made[domain][name] = {make, OpFacts{.traits = known __VA_OPT__(, ) __VA_ARGS__}};
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

// Null where nothing is known of it. ONNX Runtime writes one operator of its own in ONNX's domain.
const OpEntry* entry_of(const Node& node) {
  const bool plain = node.domain.empty() || node.domain == "ai.onnx";
  const bool stray = plain && node.op == "SimplifiedLayerNormalization";
  const auto table = tables().find(stray ? "com.microsoft" : plain ? "ai.onnx" : node.domain);
  if (table == tables().end()) return nullptr;
  const auto found = table->second.find(node.op);
  return found == table->second.end() ? nullptr : &found->second;
}

}  // namespace

std::unique_ptr<Op> make_op(const Node& node, int64_t opset) {
  const std::string domain = node.domain.empty() ? "ai.onnx" : node.domain;
  const OpEntry* entry = entry_of(node);
  if (draws_at_random(node)) {
    fail(describe(node), ": draws random numbers, so that a row would get another answer each ",
         "time; export a network whose answer is a function of its input (in PyTorch, call ",
         "model.eval() first)");
  }
  if (entry == nullptr) {
    fail(describe(node), ": operator ", node.op, " of domain '", domain,
         "' is not supported; docs/networks.md lists what is");
  }
  OpArguments arguments(node, opset);
  std::unique_ptr<Op> op = entry->make(arguments);
  arguments.finish();
  return op;
}

const OpFacts& facts_of(const Node& node) {
  static const OpFacts unknown;
  const OpEntry* entry = entry_of(node);
  return entry == nullptr ? unknown : entry->facts;
}

std::vector<std::string> unsupported_nodes(const Graph& graph) {
  std::vector<std::string> messages;
  std::map<std::string, std::pair<size_t, size_t>> seen;  // operator to message and count
  for (const Node& node : graph.nodes) {
    try {
      make_op(node, graph.opset);
    } catch (const Error& error) {
      const bool known = entry_of(node) != nullptr;
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

std::vector<std::string> supported_ops() {
  std::vector<std::string> names;
  for (const auto& [domain, table] : tables()) {
    const std::string before = domain == "ai.onnx" ? "" : domain + ".";
    for (const auto& [name, entry] : table) names.push_back(before + name);
  }
  return names;
}

}  // namespace fcp
