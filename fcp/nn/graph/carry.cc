#include "fcp/nn/graph/carry.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/graph/tensor_types.h"
#include "fcp/nn/ops/op_traits.h"
#include "fcp/nn/ops/types.h"
#include "fcp/nn/runtime/element_types.h"
#include "fcp/nn/runtime/network.h"

namespace fcp {
namespace {

constexpr char kCarriedPrefix[] = "fcp.carried/";
using NameSet = std::set<std::string>;

bool reads_any(const Node& node, const NameSet& names) {
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](const std::string& name) { return names.contains(name); });
}

// What depends on the tensor's numbers, the tensor itself among it.
NameSet downstream_of(const Graph& graph, const std::string& tensor, const NameSet& flowing) {
  NameSet found = {tensor};
  for (const Node& node : graph.nodes) {
    if (!reads_any(node, found)) continue;
    for (const std::string& output : node.outputs) {
      if (flowing.contains(output)) found.insert(output);
    }
  }
  return found;
}

// What depends on learned weights and an input.
NameSet learned_tensors(const Graph& graph, const NameSet& flowing) {
  const std::vector<bool> layers = layer_marks(graph);
  NameSet learned;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const bool norm = has_traits(node, kNormalizes);
    const bool table = has_traits(node, kGathers) && !flowing.contains(node.inputs[0]) &&
                       flowing.contains(node.inputs[1]);
    const bool flows = std::any_of(node.outputs.begin(), node.outputs.end(),
                                   [&](const auto& name) { return flowing.contains(name); });
    if (flows && (layers[i] || norm || table || reads_any(node, learned))) {
      learned.insert(node.outputs.begin(), node.outputs.end());
    }
  }
  return learned;
}

// Real numbers of the inputs, and what is computed from them without becoming a flag or an integer
// on the way.
NameSet real_tensors(const Graph& graph, const std::map<std::string, ElementType>& types) {
  const auto is_real = [&](const std::string& name) {
    const auto found = types.find(name);
    return found == types.end() || is_floating(found->second);
  };
  NameSet real;
  for (const TensorInfo& input : graph.inputs) {
    if (is_real(input.name)) real.insert(input.name);
  }
  for (const Node& node : graph.nodes) {
    if (!reads_any(node, real)) continue;
    for (const std::string& output : node.outputs) {
      if (is_real(output)) real.insert(output);
    }
  }
  return real;
}

bool is_index(const Node& node, size_t input) { return has_traits(node, kGathers) && input == 1; }

// What nodes behind the feature read beside it; nothing where some of it cannot be carried.
std::optional<std::vector<std::string>> passing_tensors(const Graph& graph,
                                                        const std::string& feature) {
  const NameSet flowing = flowing_tensors(graph);
  const NameSet behind = downstream_of(graph, feature, flowing);
  const NameSet learned = learned_tensors(graph, flowing);
  const std::map<std::string, ElementType> types = tensor_types(graph);
  const NameSet real = real_tensors(graph, types);
  NameSet passing;
  for (const Node& node : graph.nodes) {
    if (!reads_any(node, behind) || !flowing.contains(node.outputs[0])) continue;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const std::string& name = node.inputs[i];
      if (!flowing.contains(name) || behind.contains(name)) continue;
      const ElementType type = types.at(name);
      const bool known = type == ElementType::kBool || type == types.at(feature) ||
                         (is_integer(type) && is_index(node, i));
      if (!known || learned.contains(name) || real.contains(name)) return std::nullopt;
      passing.insert(name);
    }
  }
  return std::vector<std::string>(passing.begin(), passing.end());
}

// Writes the nodes of a joint tensor.
class JointTensor {
 public:
  JointTensor(Graph& graph, const std::string& feature)
      : graph_(graph), name_(kCarriedPrefix + feature), type_(tensor_types(graph).at(feature)) {}

  // Puts one tensor, whose rows have this shape, at the end, and takes it out again; the name under
  // which it then goes.
  std::string add(const std::string& tensor, const torch::Tensor& one_row, bool carried) {
    const ElementType type = element_type(one_row.scalar_type());
    const std::string own = name_ + "/" + tensor;
    const int64_t columns = one_row.numel();
    std::string flat = tensor;
    if (type != type_)
      flat = node("Cast", {flat}, own + "/cast", {{"to", static_cast<int64_t>(type_)}});
    flat = node("Reshape", {flat, integers(own + "/flat_shape", {-1, columns})}, own + "/flat");
    parts_.push_back(flat);
    const torch::Tensor places = torch::arange(first_, first_ + columns, torch::kLong);
    first_ += columns;
    scale_.insert(scale_.end(), static_cast<size_t>(columns), carried ? 0.0 : 1.0);
    graph_.initializers[own + "/places"] = places;
    std::string out = node("Gather", {name_, own + "/places"}, own + "/columns",
                           {{"axis", int64_t{1}}}, carried ? kCarriedPrefix : "");
    if (type != type_)
      out = node("Cast", {out}, own + "/typed", {{"to", static_cast<int64_t>(type)}});
    std::vector<int64_t> shape = one_row.sizes().vec();
    shape[0] = -1;
    return node("Reshape", {out, integers(own + "/shape", shape)}, own + "/again");
  }

  std::vector<double> finish() {
    node("Concat", parts_, name_, {{"axis", int64_t{1}}});
    graph_.nodes.insert(graph_.nodes.end(), nodes_.begin(), nodes_.end());
    sort_and_check(graph_);
    return scale_;
  }

  const std::string& name() const { return name_; }

 private:
  std::string node(const char* op, std::vector<std::string> inputs, const std::string& output,
                   std::map<std::string, Attribute> attributes, const std::string& prefix = "") {
    nodes_.push_back({.name = prefix + output,
                      .op = op,
                      .domain = "",
                      .inputs = std::move(inputs),
                      .outputs = {output},
                      .attributes = std::move(attributes)});
    return output;
  }
  std::string node(const char* op, std::vector<std::string> inputs, const std::string& output) {
    return node(op, std::move(inputs), output, {});
  }
  std::string integers(const std::string& name, const std::vector<int64_t>& values) {
    graph_.initializers[name] = torch::tensor(values, torch::kLong);
    return name;
  }

  Graph& graph_;
  std::string name_;
  ElementType type_;
  int64_t first_ = 0;
  std::vector<std::string> parts_;
  std::vector<double> scale_;
  std::vector<Node> nodes_;
};

// Rows along the first axis, of at least one number each.
bool has_rows(const Tensors& once, const Tensors& twice) {
  if (once.empty() || twice.empty()) return false;  // the file does not tell
  for (size_t i = 0; i < once.size(); ++i) {
    const bool rows = once[i].dim() > 0 && once[i].size(0) == 1 && twice[i].size(0) == 2;
    if (!rows || once[i].numel() == 0) return false;
  }
  return true;
}

}  // namespace

std::optional<CarriedCut> carry_past_cut(const Graph& network, const Graph& part,
                                         const std::string& where) {
  const std::string feature = resolve_cut(part, where);
  if (!find_leak(part, feature)) return std::nullopt;
  const std::optional<std::vector<std::string>> passing = passing_tensors(part, feature);
  if (!passing || passing->empty()) return std::nullopt;
  std::vector<std::string> names = {feature};
  names.insert(names.end(), passing->begin(), passing->end());
  Tensors once, twice;
  try {
    once = values_at_zero(part, names, 1);
    twice = values_at_zero(part, names, 2);
  } catch (const Error&) {  // it does not run on zeros
    return std::nullopt;
  }
  if (!has_rows(once, twice) || !once[0].is_floating_point()) return std::nullopt;

  CarriedCut carried{network, "", {}};
  const NameSet behind = downstream_of(network, feature, flowing_tensors(network));
  JointTensor joint(carried.network, feature);
  std::map<std::string, std::string> renamed;
  for (size_t i = 0; i < names.size(); ++i) renamed[names[i]] = joint.add(names[i], once[i], i > 0);
  for (Node& node : carried.network.nodes) {
    if (!reads_any(node, behind)) continue;
    for (std::string& input : node.inputs) {
      const auto found = renamed.find(input);
      if (found != renamed.end()) input = found->second;
    }
  }
  carried.scale = joint.finish();
  carried.cut = joint.name();
  std::vector<std::string> outputs;
  for (const TensorInfo& output : part.outputs) outputs.push_back(output.name);
  if (find_leak(select_outputs(carried.network, outputs), carried.cut)) return std::nullopt;
  return carried;
}

bool takes_carried(const Node& node) {
  return node.op == "Gather" && node.name.starts_with(kCarriedPrefix) && node.inputs.size() == 2 &&
         node.name.substr(std::string(kCarriedPrefix).size()) == node.outputs[0];
}

}  // namespace fcp
