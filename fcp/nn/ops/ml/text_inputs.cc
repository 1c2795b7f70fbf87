#include "fcp/nn/ops/ml/text_inputs.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/nn/ops/op.h"

namespace fcp {
namespace {

using Json = nlohmann::ordered_json;
using Texts = std::vector<std::string>;

constexpr int64_t kOnnxString = 8, kOnnxInt64 = 7;

class TextNumbering {
 public:
  TextNumbering(Graph& graph, const std::vector<std::string>& inputs) : graph_(graph) {
    for (const std::string& name : inputs) sources_[name] = {name};
    for (const std::string& name : inputs) known_[name];
  }

  void run() {
    for (Node& node : graph_.nodes) {
      std::set<std::string> from;
      for (const std::string& name : node.inputs) {
        const auto found = sources_.find(name);
        if (found != sources_.end()) from.insert(found->second.begin(), found->second.end());
      }
      if (!from.empty()) visit(node, from);
    }
    Json all = Json::array();
    for (size_t i = 0; i < graph_.inputs.size();) {
      const auto known = known_.find(graph_.inputs[i].name);
      if (known == known_.end()) {
        ++i;
      } else if (known->second.empty()) {
        drop(i);
      } else {
        all.push_back(replace(graph_.inputs[i++], known->second));
      }
    }
    if (all.empty()) return;
    try {
      graph_.metadata[kTextsKey] = all.dump();
    } catch (const nlohmann::json::exception&) {
      fail("a category of the network's text is not UTF-8");
    }
  }

 private:
  void visit(Node& node, const std::set<std::string>& from) {
    if (node.op == "Cast" && to_string(node)) {  // of text
      node.op = "Identity";
      node.attributes.clear();
    }
    if (node.domain == "ai.onnx.ml" && node.op == "OneHotEncoder") {
      return encode(node, "cats_strings", "cats_int64s", from);
    }
    if (node.domain == "ai.onnx.ml" && node.op == "LabelEncoder") return encode_labels(node, from);
    if (make_op(node, graph_.opset)->missing_rule() != MissingRule::kMoves) {
      fail(describe(node), ": reads text; only OneHotEncoder and LabelEncoder may");
    }
    for (const std::string& output : node.outputs) sources_[output] = from;
  }

  static bool to_string(const Node& node) {
    const auto to = node.attributes.find("to");
    return to != node.attributes.end() && std::get_if<int64_t>(&to->second) != nullptr &&
           std::get<int64_t>(to->second) == kOnnxString;
  }

  // The number of a text, from 1.
  int64_t number_of(const std::string& text) {
    return numbers_.emplace(text, static_cast<int64_t>(numbers_.size()) + 1).first->second;
  }

  void encode(Node& node, const char* texts, const char* numbers,
              const std::set<std::string>& from) {
    const auto found = node.attributes.find(texts);
    const auto* values =
        found == node.attributes.end() ? nullptr : std::get_if<Texts>(&found->second);
    if (values == nullptr) fail(describe(node), ": reads text and has no '", texts, "'");
    std::vector<int64_t> codes;
    for (const std::string& text : *values) {
      codes.push_back(number_of(text));
      for (const std::string& input : from) {
        Texts& own = known_[input];
        if (std::find(own.begin(), own.end(), text) == own.end()) own.push_back(text);
      }
    }
    node.attributes.erase(texts);
    node.attributes[numbers] = codes;
  }

  // The first version of the operator counts its classes.
  void encode_labels(Node& node, const std::set<std::string>& from) {
    const auto classes = node.attributes.extract("classes_strings");
    if (!classes.empty()) {
      const auto* texts = std::get_if<Texts>(&classes.mapped());
      if (texts == nullptr) fail(describe(node), ": its 'classes_strings' are not text");
      std::vector<int64_t> values;
      for (size_t i = 0; i < texts->size(); ++i) values.push_back(static_cast<int64_t>(i));
      node.attributes["keys_strings"] = *texts;
      node.attributes["values_int64s"] = values;
    }
    encode(node, "keys_strings", "keys_int64s", from);
  }

  // An input that no encoder reads.
  void drop(size_t i) {
    const std::string name = graph_.inputs[i].name;
    for (const Node& node : graph_.nodes) {
      if (std::find(node.inputs.begin(), node.inputs.end(), name) != node.inputs.end()) {
        fail(describe(node), ": reads the text '", name, "', which no OneHotEncoder or ",
             "LabelEncoder encodes");
      }
    }
    graph_.inputs.erase(graph_.inputs.begin() + static_cast<std::ptrdiff_t>(i));
  }

  Json replace(TensorInfo& info, const Texts& categories) {
    if (!info.known_rank || info.shape.empty() || info.shape.size() > 2 ||
        (info.shape.size() == 2 && info.shape[1] == kDynamic)) {
      fail("input '", info.name, "' has text in an unknown number of columns");
    }
    const int64_t columns = info.shape.size() == 2 ? info.shape[1] : 1;
    const auto count = static_cast<int64_t>(categories.size());
    const std::string inside = info.name + "/numbered";
    for (Node& node : graph_.nodes) {
      std::replace(node.inputs.begin(), node.inputs.end(), info.name, inside);
    }
    std::vector<int64_t> cells = {-1};
    if (info.shape.size() == 2) cells.push_back(columns);
    std::vector<float> numbers;
    for (const std::string& text : categories) {
      numbers.push_back(static_cast<float>(number_of(text)));
    }
    std::vector<Node> nodes;
    const auto add = [&](const char* op, const std::string& from, const torch::Tensor& constant,
                         const std::string& to) {
      Node& node = nodes.emplace_back();
      node.name = to;
      node.op = op;
      node.inputs = {from};
      node.outputs = {to};
      if (!constant.defined()) return;
      node.inputs.push_back(to + "/constant");
      graph_.initializers[to + "/constant"] = constant;
    };
    const std::vector<int64_t> parts = {-1, columns, count}, last = {2};
    add("Reshape", info.name, torch::tensor(parts), inside + "/cells");
    add("Mul", inside + "/cells", torch::tensor(numbers), inside + "/products");
    const bool by_input = graph_.opset >= 13;
    add("ReduceSum", inside + "/products", by_input ? torch::tensor(last) : torch::Tensor(),
        inside + "/sums");
    if (!by_input) nodes.back().attributes["axes"] = last;
    nodes.back().attributes["keepdims"] = int64_t{0};
    add("Reshape", inside + "/sums", torch::tensor(cells), inside + "/shaped");
    add("Cast", inside + "/shaped", {}, inside);
    nodes.back().attributes["to"] = kOnnxInt64;
    graph_.nodes.insert(graph_.nodes.begin(), nodes.begin(), nodes.end());
    info.type = ElementType::kFloat;
    info.shape = {info.shape[0], columns * count};
    info.dimension_names.resize(1);
    info.dimension_names.emplace_back();
    return {{"name", info.name}, {"columns", columns}, {"categories", categories}};
  }

  Graph& graph_;
  std::map<std::string, std::set<std::string>> sources_;  // tensors of text, and of which inputs
  std::map<std::string, Texts> known_;                    // by input
  std::map<std::string, int64_t> numbers_;
};

}  // namespace

void number_texts(Graph& graph, const std::vector<std::string>& inputs) {
  if (!inputs.empty()) TextNumbering(graph, inputs).run();
}

std::vector<TextInput> text_inputs(const Graph& network) {
  const auto found = network.metadata.find(kTextsKey);
  std::vector<TextInput> inputs;
  if (found == network.metadata.end()) return inputs;
  try {
    for (const Json& one : Json::parse(found->second)) {
      inputs.push_back({one.at("name").get<std::string>(), one.at("columns").get<int64_t>(),
                        one.at("categories").get<Texts>()});
    }
  } catch (const nlohmann::json::exception&) {
    fail("its '", kTextsKey, "' is damaged");
  }
  return inputs;
}

}  // namespace fcp
