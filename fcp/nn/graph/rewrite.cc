#include "fcp/nn/graph/rewrite.h"

#include <map>
#include <optional>
#include <string>

#include "fcp/nn/graph/simplify.h"

namespace fcp {
namespace {

constexpr double kEqualBeyond = 15;

class PatternReader {
 public:
  explicit PatternReader(const Graph& graph) : graph_(graph) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      for (const std::string& output : graph.nodes[i].outputs) made_by_[output] = i;
    }
  }

  const Node* maker(const std::string& tensor, const std::string& op) const {
    const auto found = made_by_.find(tensor);
    if (found == made_by_.end()) return nullptr;
    const Node& node = graph_.nodes[found->second];
    return node.op == op && node.domain.empty() ? &node : nullptr;
  }

  std::optional<double> constant(const std::string& tensor) const {
    const auto found = graph_.initializers.find(tensor);
    if (found == graph_.initializers.end() || found->second.numel() != 1) return std::nullopt;
    return found->second.number(0);
  }

  // β of tensor = βx, where the scale is written out; 1 where tensor is x itself.
  std::optional<double> scale(const std::string& tensor, const std::string& x) const {
    if (tensor == x) return 1;
    const Node* node = maker(tensor, "Mul");
    if (node == nullptr) return std::nullopt;
    for (const size_t i : {size_t{0}, size_t{1}}) {
      if (node->inputs[1 - i] == x) return constant(node->inputs[i]);
    }
    return std::nullopt;
  }

  // Whether the Where node is a softplus of its second input.
  bool is_softplus(const Node& where) const {
    const std::string& x = where.inputs[1];
    const Node* compare = maker(where.inputs[0], "Greater");
    if (compare == nullptr) compare = maker(where.inputs[0], "GreaterOrEqual");
    if (compare == nullptr) return false;
    const std::optional<double> limit = constant(compare->inputs[1]);
    const Node* divide = maker(where.inputs[2], "Div");
    const Node* softplus =
        maker(divide == nullptr ? where.inputs[2] : divide->inputs[0], "Softplus");
    if (softplus == nullptr || !limit || *limit < kEqualBeyond) return false;
    const std::optional<double> inner = scale(softplus->inputs[0], x);
    const std::optional<double> compared = scale(compare->inputs[0], x);
    const std::optional<double> outer = divide == nullptr ? 1 : constant(divide->inputs[1]);
    return inner && compared && outer && *inner == *outer && *compared == *inner && *inner > 0;
  }

 private:
  const Graph& graph_;
  std::map<std::string, size_t> made_by_;
};

}  // namespace

void rewrite(Graph& graph) {
  const PatternReader reader(graph);
  bool changed = false;
  for (Node& node : graph.nodes) {
    if (node.op != "Where" || !node.domain.empty() || node.inputs.size() != 3) continue;
    if (!reader.is_softplus(node)) continue;
    node.op = "Identity";
    node.inputs = {node.inputs[2]};
    changed = true;
  }
  if (changed) drop_unneeded(graph);
}

}  // namespace fcp
