#include "fcp/nn/graph/simplify.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "fcp/base/error.h"
#include "fcp/nn/ops/op.h"
#include "fcp/nn/ops/types.h"
#include "fcp/nn/runtime/tensor_memory.h"

namespace fcp {
namespace {

size_t bytes_of(const Graph& graph) {
  size_t bytes = 0;
  for (const auto& [name, tensor] : graph.initializers) bytes += tensor.nbytes();
  for (const Node& node : graph.nodes) {
    for (const auto& [name, value] : node.attributes) {
      if (const auto* tensor = std::get_if<ConstantTensor>(&value)) bytes += tensor->nbytes();
    }
  }
  return bytes;
}

std::map<std::string, size_t> count_readers(const Graph& graph) {
  std::map<std::string, size_t> readers;
  for (const Node& node : graph.nodes) {
    for (const std::string& input : node.inputs) ++readers[input];
  }
  for (const TensorInfo& output : graph.outputs) ++readers[output.name];
  return readers;
}

// Initializers that nothing reads any more.
void drop_unread(Graph& graph) {
  const std::map<std::string, size_t> readers = count_readers(graph);
  std::erase_if(graph.initializers,
                [&](const auto& entry) { return !readers.contains(entry.first); });
}

// Whether a constant node gives a type that libtorch lacks (ops/types.h). Such a node stays where
// something that is not constant reads it, because its type would be lost in an initializer.
bool makes_narrow(const Node& node, const std::map<std::string, torch::Tensor>& narrow) {
  for (const char* name : {"to", "output_dtype"}) {
    const auto found = node.attributes.find(name);
    const auto* type =
        found == node.attributes.end() ? nullptr : std::get_if<int64_t>(&found->second);
    if (type != nullptr) return is_narrow(*type);
  }
  return keeps_narrow_type(node.op) &&
         std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](const std::string& input) { return narrow.contains(input); });
}

}  // namespace

void drop_unneeded(Graph& graph) {
  std::set<std::string> wanted;
  for (const TensorInfo& output : graph.outputs) wanted.insert(output.name);
  std::vector<Node> kept;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const bool needed = std::any_of(node->outputs.begin(), node->outputs.end(),
                                    [&](const std::string& name) { return wanted.contains(name); });
    if (!needed) continue;
    wanted.insert(node->inputs.begin(), node->inputs.end());
    kept.push_back(std::move(*node));
  }
  graph.nodes.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
  drop_unread(graph);
}

void fold_constants(Graph& graph) {
  torch::NoGradGuard no_grad;
  std::map<std::string, torch::Tensor> narrow;  // constants whose type no initializer can have
  const size_t budget = 4 * bytes_of(graph) + kMaxFoldedBytes;
  size_t folded = 0;
  std::vector<Node> kept;
  for (Node& node : graph.nodes) {
    Tensors inputs;
    bool constant = true;
    for (const std::string& input : node.inputs) {
      const auto found = graph.initializers.find(input);
      const auto hidden = narrow.find(input);
      const bool plain = found != graph.initializers.end(), cast = hidden != narrow.end();
      constant = constant && (input.empty() || plain || cast);
      inputs.push_back(plain ? found->second.tensor() : cast ? hidden->second : torch::Tensor());
    }
    if (!constant) {
      kept.push_back(std::move(node));
      continue;
    }
    const auto check = [&](double bytes) {
      if (bytes <= static_cast<double>(budget)) return;
      fail(describe(node), ": constants grow beyond ", budget, " bytes");
    };
    check(static_cast<double>(folded) + expected_bytes(node, inputs));
    const Tensors outputs = make_op(node, graph.opset)->forward(inputs);
    if (makes_narrow(node, narrow)) {
      narrow[node.outputs[0]] = outputs[0];
      kept.push_back(std::move(node));
      continue;
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].empty() || i >= outputs.size()) continue;
      folded += outputs[i].nbytes();
      check(static_cast<double>(folded));
      graph.initializers[node.outputs[i]] = outputs[i].contiguous();
    }
  }
  graph.nodes = std::move(kept);
  if (narrow.empty()) {
    drop_unread(graph);
  } else {
    drop_unneeded(graph);
  }
}

namespace {

int64_t integer_attribute(const Node& node, const std::string& name, int64_t fallback) {
  const auto found = node.attributes.find(name);
  if (found == node.attributes.end()) return fallback;
  const auto* value = std::get_if<int64_t>(&found->second);
  return value == nullptr ? fallback : *value;
}

// In training mode mean and variance are those of the batch. Old files show it by more outputs.
bool trains(const Node& node) {
  const auto wanted = [](const std::string& name) { return !name.empty(); };
  return integer_attribute(node, "training_mode", 0) != 0 ||
         std::count_if(node.outputs.begin(), node.outputs.end(), wanted) > 1;
}

struct BatchNorm {
  torch::Tensor scale;  // k, one a channel
  torch::Tensor shift;  // t − k m
};

// The affine map of a BatchNormalization with constant parameters, in double precision.
bool read_batch_norm(const Graph& graph, const Node& node, BatchNorm& result) {
  if (node.op != "BatchNormalization" || node.inputs.size() != 5) return false;
  if (trains(node)) return false;
  torch::Tensor parameters[4];
  for (size_t i = 0; i < 4; ++i) {
    const auto found = graph.initializers.find(node.inputs[i + 1]);
    if (found == graph.initializers.end()) return false;
    parameters[i] = found->second.tensor().to(torch::kDouble);
  }
  const auto epsilon = node.attributes.find("epsilon");
  const float* value =
      epsilon == node.attributes.end() ? nullptr : std::get_if<float>(&epsilon->second);
  const double variance_floor = value == nullptr ? 1e-5 : *value;
  result.scale = parameters[0] / (parameters[3] + variance_floor).sqrt();
  result.shift = parameters[1] - parameters[2] * result.scale;
  return true;
}

bool is_unit(const Node& node, const std::string& name) {
  const auto found = node.attributes.find(name);
  const auto* value = found == node.attributes.end() ? nullptr : std::get_if<float>(&found->second);
  return value == nullptr || *value == 1.0f;
}

// The weight's axis that counts output channels, or -1 where scaling it is not exact.
int64_t channel_axis(const Node& node, const torch::Tensor& weight) {
  if (node.op == "Conv") return 0;
  if (node.op == "ConvTranspose") return integer_attribute(node, "group", 1) == 1 ? 1 : -1;
  const bool plain = node.op == "Gemm" && weight.dim() == 2 && is_unit(node, "alpha") &&
                     is_unit(node, "beta") && integer_attribute(node, "transA", 0) == 0;
  if (!plain) return -1;
  return integer_attribute(node, "transB", 0) == 0 ? 1 : 0;
}

// Scales weight and bias of `layer` by `norm` under new names. False where that is not possible.
bool scale_layer(Graph& graph, Node& layer, const BatchNorm& norm) {
  const auto weight = graph.initializers.find(layer.inputs.size() > 1 ? layer.inputs[1] : "");
  if (weight == graph.initializers.end()) return false;
  const torch::Tensor old_weight = weight->second;
  const int64_t axis = channel_axis(layer, old_weight);
  if (axis < 0 || axis >= old_weight.dim() || old_weight.size(axis) != norm.scale.numel()) {
    return false;
  }
  torch::Tensor bias = torch::zeros_like(norm.shift);
  if (layer.inputs.size() > 2 && !layer.inputs[2].empty()) {
    const auto found = graph.initializers.find(layer.inputs[2]);
    if (found == graph.initializers.end()) return false;
    const bool one_a_channel = found->second.dim() == 1 && (found->second.numel() == bias.numel() ||
                                                            found->second.numel() == 1);
    if (!one_a_channel) return false;
    bias = found->second.tensor().to(torch::kDouble).expand_as(bias);
  }
  std::vector<int64_t> shape(static_cast<size_t>(old_weight.dim()), 1);
  shape[static_cast<size_t>(axis)] = -1;
  const std::string prefix = layer.outputs[0] + "/folded_";
  graph.initializers[prefix + "weight"] =
      (old_weight.to(torch::kDouble) * norm.scale.reshape(shape)).to(old_weight.scalar_type());
  graph.initializers[prefix + "bias"] =
      (bias * norm.scale + norm.shift).to(old_weight.scalar_type());
  layer.inputs.resize(3);
  layer.inputs[1] = prefix + "weight";
  layer.inputs[2] = prefix + "bias";
  return true;
}

}  // namespace

void refuse_training(const Node& node) {
  if (node.op == "BatchNormalization" && node.domain.empty() && trains(node)) {
    fail(describe(node), ": is in training mode, where rows depend on each other; export the ",
         "network for inference (in PyTorch, call model.eval() first)");
  }
}

void fold_batch_norm(Graph& graph) {
  torch::NoGradGuard no_grad;
  const std::map<std::string, size_t> readers = count_readers(graph);
  std::map<std::string, size_t> made_by;
  std::set<size_t> removed;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    BatchNorm norm;
    const auto before = node.inputs.empty() ? made_by.end() : made_by.find(node.inputs[0]);
    const bool folds = before != made_by.end() && readers.at(node.inputs[0]) == 1 &&
                       read_batch_norm(graph, node, norm) &&
                       scale_layer(graph, graph.nodes[before->second], norm);
    if (folds) {
      graph.nodes[before->second].outputs[0] = node.outputs[0];
      made_by[node.outputs[0]] = before->second;
      removed.insert(i);
    } else if (!node.outputs.empty()) {
      made_by[node.outputs[0]] = i;
    }
  }
  std::vector<Node> kept;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!removed.contains(i)) kept.push_back(std::move(graph.nodes[i]));
  }
  graph.nodes = std::move(kept);
  drop_unread(graph);
}

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
