#include "fcp/nn/graph/output_kind.h"

#include <map>
#include <set>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/nn/graph/cut.h"

namespace fcp {
namespace {

class MeaningReader {
 public:
  explicit MeaningReader(const Graph& graph) : graph_(graph) {
    for (const Node& node : graph.nodes) {
      for (const std::string& output : node.outputs) made_by_[output] = &node;
    }
  }

  OutputMeaning read(const std::string& output) const {
    const std::string tensor = through(output);
    const Node* node = maker(tensor);
    if (node == nullptr) return {};
    if (node->domain == "ai.onnx.ml") return of_classifier(*node, tensor);
    if (!node->domain.empty() || node->inputs.empty()) return {};
    const std::string& input = node->inputs[0];
    if (node->op == "Softmax" && over_classes(*node)) return {OutputKind::kProbabilities, input};
    if (node->op == "LogSoftmax" && over_classes(*node)) {
      return {OutputKind::kLogProbabilities, input};
    }
    if (node->op == "Sigmoid") return {OutputKind::kProbability, input};
    if (node->op == "Log" || node->op == "Exp") return of_function(*node);
    if (node->op == "Div") return of_quotient(*node);
    return {};
  }

 private:
  // None where it reads nothing, as in a damaged file.
  const Node* maker(const std::string& tensor) const {
    const auto found = made_by_.find(tensor);
    return found == made_by_.end() || found->second->inputs.empty() ? nullptr : found->second;
  }

  std::string through(std::string tensor) const {
    static const std::set<std::string> keep = {"Identity", "Cast",    "Dropout",   "Reshape",
                                               "Flatten",  "Squeeze", "Unsqueeze", "Clip"};
    for (const Node* node = maker(tensor);
         node != nullptr && node->domain.empty() && keep.contains(node->op); node = maker(tensor)) {
      tensor = node->inputs[0];
    }
    return tensor;
  }

  // Over axis 1 or the last, as files for rows of classes have it.
  static bool over_classes(const Node& node) {
    const auto axis = node.attributes.find("axis");
    if (axis == node.attributes.end()) return true;
    const int64_t* value = std::get_if<int64_t>(&axis->second);
    return value != nullptr && (*value == 1 || *value == -1);
  }

  // The logarithm of probabilities, and the exponential of their logarithms.
  OutputMeaning of_function(const Node& node) const {
    const OutputMeaning inner = read(node.inputs[0]);
    if (node.op == "Log" && inner.kind == OutputKind::kProbabilities) {
      return {OutputKind::kLogProbabilities, inner.logits};
    }
    if (node.op == "Exp" && inner.kind == OutputKind::kLogProbabilities) {
      return {OutputKind::kProbabilities, inner.logits};
    }
    return {};
  }

  // x / Σ x where x is positive: an exponential, or sigmoids.
  OutputMeaning of_quotient(const Node& node) const {
    if (node.inputs.size() < 2) return {};
    std::string divisor = through(node.inputs[1]);
    const Node* sum = maker(divisor);
    while (sum != nullptr && sum->op == "Expand") sum = maker(through(sum->inputs[0]));
    const std::string top = through(node.inputs[0]);
    if (sum == nullptr || sum->op != "ReduceSum" || through(sum->inputs[0]) != top) return {};
    const Node* positive = maker(top);
    if (positive == nullptr || !positive->domain.empty()) return {};
    if (positive->op == "Exp") return {OutputKind::kProbabilities, positive->inputs[0]};
    if (positive->op == "Sigmoid") return {OutputKind::kProbabilities, ""};
    return {};
  }

  // The second output: probabilities, unless the file leaves raw scores there.
  static OutputMeaning of_classifier(const Node& node, const std::string& tensor) {
    if (node.op == "Normalizer") {
      const auto norm = node.attributes.find("norm");
      const auto* text =
          norm == node.attributes.end() ? nullptr : std::get_if<std::string>(&norm->second);
      return text != nullptr && *text == "L1" ? OutputMeaning{OutputKind::kProbabilities, ""}
                                              : OutputMeaning{};
    }
    const bool classifier = node.op == "TreeEnsembleClassifier" || node.op == "LinearClassifier" ||
                            node.op == "SVMClassifier";
    if (!classifier || node.outputs.size() < 2 || node.outputs[1] != tensor) return {};
    const auto transform = node.attributes.find("post_transform");
    const auto* text =
        transform == node.attributes.end() ? nullptr : std::get_if<std::string>(&transform->second);
    const std::string name = text == nullptr ? "NONE" : *text;
    if (name == "SOFTMAX" || name == "LOGISTIC") return {OutputKind::kProbabilities, ""};
    // A forest's leaves hold shares that add up to 1, and so do the coupled pairs of an SVM; linear
    // scores are no probabilities.
    if (name == "NONE" &&
        (node.op == "TreeEnsembleClassifier" || node.attributes.contains("prob_a"))) {
      return {OutputKind::kProbabilities, ""};
    }
    return {};
  }

  const Graph& graph_;
  std::map<std::string, const Node*> made_by_;
};

Node simple_node(const std::string& op, const std::string& input, const std::string& output) {
  Node node;
  node.op = op;
  node.name = output;
  node.inputs = {input};
  node.outputs = {output};
  return node;
}

TensorInfo output_info(const Graph& graph, const std::string& output) {
  for (const TensorInfo& info : graph.outputs) {
    if (info.name == output) return info;
  }
  fail("the network has no output '", output, "'");
}

}  // namespace

OutputMeaning output_meaning(const Graph& graph, const std::string& output) {
  return MeaningReader(graph).read(output);
}

Graph logits_graph(const Graph& graph, const std::string& output, bool one_logit) {
  OutputMeaning meaning = output_meaning(graph, output);
  if (one_logit && meaning.kind == OutputKind::kPlain) {
    meaning = {OutputKind::kProbability, output};
  }
  TensorInfo info = output_info(graph, output);
  Graph changed = graph;
  if (meaning.kind == OutputKind::kProbability) {
    if (info.known_rank && info.shape.size() > 1 && info.shape.back() != 1) {
      return extract(graph, graph.inputs, {info});  // many sigmoids: labels of their own
    }
    changed.initializers[output + "/zero"] = ConstantTensor::zeros(info.type, {1});
    changed.initializers[output + "/column"] = constant_tensor<int64_t>({-1, 1});
    Node column = simple_node("Reshape", meaning.logits, output + "/logit");  // of [N] too
    column.inputs.push_back(output + "/column");
    Node zero = simple_node("Mul", output + "/logit", output + "/zeros");
    zero.inputs.push_back(output + "/zero");
    Node both = simple_node("Concat", output + "/zeros", output + "/logits");
    both.inputs.push_back(output + "/logit");
    both.attributes["axis"] = int64_t{-1};
    changed.nodes.insert(changed.nodes.end(), {column, zero, both});
    info.name = output + "/logits";
    info.known_rank = true;
    info.shape = {kDynamic, 2};
    info.dimension_names.assign(2, "");
  } else if (!meaning.logits.empty()) {
    info.name = meaning.logits;
  } else if (meaning.kind == OutputKind::kProbabilities) {
    changed.nodes.push_back(simple_node("Log", output, output + "/logarithm"));
    info.name = output + "/logarithm";
  }
  return extract(changed, changed.inputs, {info});
}

}  // namespace fcp
