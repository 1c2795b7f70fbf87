#include "fcp/nn/graph/lower_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "fcp/base/special_numbers.h"
#include "fcp/nn/runtime/network.h"

namespace fcp {
namespace {

int64_t integer_of(const Node& node, const std::string& name) {
  const auto found = node.attributes.find(name);
  return found == node.attributes.end() ? 0 : std::get<int64_t>(found->second);
}

double number_of(const Node& node, const std::string& name) {
  const auto found = node.attributes.find(name);
  return found == node.attributes.end() ? 0.0 : static_cast<double>(std::get<float>(found->second));
}

bool given(const Node& node, size_t input) {
  return input < node.inputs.size() && !node.inputs[input].empty();
}

torch::Tensor added_mask(const torch::Tensor& mask) {
  if (mask.scalar_type() != torch::kBool) return mask;
  return torch::zeros(mask.sizes(), torch::kFloat).masked_fill(mask.logical_not(), -kInfinity);
}

// Writes the nodes that stand for one Attention; their tensors are called after its output.
class AttentionParts {
 public:
  AttentionParts(const Node& node, Graph& graph, std::vector<Node>& nodes)
      : node_(node), graph_(graph), nodes_(nodes) {}

  void write() {
    const int64_t queries = integer_of(node_, "q_num_heads");
    const int64_t keys = integer_of(node_, "kv_num_heads");
    const int64_t times = queries > 0 && keys > 0 ? queries / keys : 1;
    const std::string q = by_heads(0, queries, 1, {0, 2, 1, 3});
    const std::string k = by_heads(1, keys, times, {0, 2, 3, 1});
    const std::string v = by_heads(2, keys, times, {0, 2, 1, 3});
    const std::string root = root_of_scale(q);
    std::string scores =
        add("MatMul", {add("Mul", {q, root}, "q"), add("Mul", {k, root}, "k")}, "product");
    if (const double cap = number_of(node_, "softcap"); cap > 0) {
      const std::string most = constant("cap", torch::tensor(static_cast<float>(cap)));
      scores = add("Tanh", {add("Div", {scores, most}, "share_of_cap")}, "bent");
      scores = add("Mul", {scores, most}, "capped");
    }
    if (given(node_, 3)) {
      const torch::Tensor mask = graph_.initializers.at(node_.inputs[3]);
      scores = add("Add", {scores, constant("mask", added_mask(mask))}, "masked");
    }
    if (integer_of(node_, "is_causal") != 0) {
      scores = add("Add", {scores, causal_mask(q, k)}, "causal");
    }
    const std::string shares = add("Softmax", {scores}, "shares", {{"axis", int64_t{-1}}});
    if (queries == 0) return finish("MatMul", {shares, v});
    const std::string mixed = add("MatMul", {shares, v}, "mixed");
    finish("Reshape", {transposed(mixed, "turned", {0, 2, 1, 3}), integers("flat", {0, 0, -1})});
  }

 private:
  std::string name(const std::string& what) const { return node_.outputs[0] + "/" + what; }

  std::string add(const std::string& op, std::vector<std::string> inputs, const std::string& what,
                  std::map<std::string, Attribute> attributes = {}) {
    nodes_.push_back(
        {name(what) + "_node", op, "", std::move(inputs), {name(what)}, std::move(attributes)});
    return name(what);
  }

  // The last node keeps the operator's name.
  void finish(const std::string& op, std::vector<std::string> inputs) {
    nodes_.push_back({node_.name, op, "", std::move(inputs), {node_.outputs[0]}, {}});
  }

  std::string constant(const std::string& what, const torch::Tensor& value) {
    graph_.initializers[name(what)] = value;
    return name(what);
  }
  std::string integers(const std::string& what, const std::vector<int64_t>& values) {
    return constant(what, torch::tensor(values, torch::kLong));
  }

  std::string transposed(const std::string& x, const std::string& what,
                         std::vector<int64_t> order) {
    return add("Transpose", {x}, what, {{"perm", std::move(order)}});
  }

  // [N, T, heads·size] or [N, heads, T, size] to [N, T, heads, size], each head `times` times, and
  // then in this order.
  std::string by_heads(size_t input, int64_t heads, int64_t times, std::vector<int64_t> order) {
    const std::string what = input == 0 ? "q" : input == 1 ? "k" : "v";
    std::string x = node_.inputs[input];
    if (heads == 0) {
      x = transposed(x, what + "_tokens", {0, 2, 1, 3});
    } else {
      x = add("Reshape", {x, integers(what + "_heads", {0, 0, heads, -1})}, what + "_tokens");
    }
    if (times > 1) {
      const std::string one = add("Unsqueeze", {x, integers(what + "_axis", {3})}, what + "_one");
      const std::vector<std::string> all(static_cast<size_t>(times), one);
      const std::string several = add("Concat", all, what + "_several", {{"axis", int64_t{3}}});
      x = add("Reshape", {several, integers(what + "_all", {0, 0, heads * times, -1})},
              what + "_repeated");
    }
    return transposed(x, what + "_by_head", std::move(order));
  }

  // √s, where s is 1 / √size unless it is given.
  std::string root_of_scale(const std::string& q) {
    if (const double scale = number_of(node_, "scale"); scale > 0) {
      return constant("root", torch::tensor(static_cast<float>(std::sqrt(scale))));
    }
    const std::string size =
        add("Cast", {size_of(q, 3, "size")}, "size_number", {{"to", int64_t{1}}});
    return add("Reciprocal", {add("Sqrt", {add("Sqrt", {size}, "size_root")}, "size_roots")},
               "root");
  }

  std::string size_of(const std::string& x, int64_t axis, const std::string& what) {
    const std::string shape = add("Shape", {x}, what + "_shape");
    return add("Gather", {shape, constant(what + "_at", torch::tensor(axis))}, what);
  }

  // −∞ where a key comes after its query.
  std::string causal_mask(const std::string& q, const std::string& k) {
    const std::string zero = constant("zero", torch::tensor(int64_t{0}));
    const std::string one = constant("one", torch::tensor(int64_t{1}));
    const std::string keys = add("Range", {zero, size_of(k, 3, "keys"), one}, "key_places");
    const std::string places = add("Range", {zero, size_of(q, 2, "queries"), one}, "query_places");
    const std::string column =
        add("Unsqueeze", {places, integers("column_axis", {1})}, "query_column");
    const std::string later = add("Greater", {keys, column}, "later");
    const float least = -std::numeric_limits<float>::infinity();
    return add(
        "Where",
        {later, constant("never", torch::tensor(least)), constant("nothing", torch::tensor(0.0f))},
        "causal_mask");
  }

  const Node& node_;
  Graph& graph_;
  std::vector<Node>& nodes_;
};

}  // namespace

bool can_lower(const Node& node, const std::map<std::string, ConstantTensor>& initializers) {
  if (node.op != "Attention" || !node.domain.empty()) return false;
  for (size_t i = 1; i < node.outputs.size(); ++i) {
    if (!node.outputs[i].empty()) return false;
  }
  if (given(node, 4) || given(node, 5)) return false;
  const int64_t queries = integer_of(node, "q_num_heads"), keys = integer_of(node, "kv_num_heads");
  if ((queries > 0) != (keys > 0) || (keys > 0 && queries % keys != 0)) return false;
  if (!given(node, 3)) return true;
  const auto mask = initializers.find(node.inputs[3]);
  if (mask == initializers.end() || mask->second.dim() == 0) return false;
  return !added_mask(mask->second).amax(-1).eq(-kInfinity).any().item<bool>();
}

Graph lower_attention(Graph graph) {
  std::vector<Node> nodes;
  for (const Node& node : std::exchange(graph.nodes, {})) {
    if (can_lower(node, graph.initializers)) {
      AttentionParts(node, graph, nodes).write();
    } else {
      nodes.push_back(node);
    }
  }
  graph.nodes = std::move(nodes);
  return graph;
}

std::shared_ptr<const Network> with_attention_lowered(std::shared_ptr<const Network> network) {
  const std::vector<Step>& steps = network->steps();
  const bool any = std::any_of(steps.begin(), steps.end(),
                               [](const Step& step) { return step.node.op == "Attention"; });
  if (!any) return network;
  NetworkOptions options;
  options.device = network->device();
  return std::make_shared<const Network>(lower_attention(network->graph()), options);
}

}  // namespace fcp
