#include "fcp/nn/graph/tensor_types.h"

#include <optional>

#include "fcp/nn/ops/op_traits.h"
#include "fcp/nn/ops/types.h"

namespace fcp {
namespace {

using Types = std::map<std::string, torch::ScalarType>;

// The input whose type an operator's outputs have.
size_t typed_input(const std::string& op) {
  if (op == "Where" || op == "DequantizeLinear" || op == "CastLike") return 1;
  return op == "OneHot" || op == "QuantizeLinear" || op == "QLinearConcat" ? 2 : 0;
}

// Of If, Loop and Scan, as the graph inside says; Loop's has the condition before its outputs.
std::optional<torch::ScalarType> type_inside(const Node& node, size_t output) {
  for (const auto& [name, value] : node.attributes) {
    const auto* inner = std::get_if<Subgraph>(&value);
    const size_t place = node.op == "Loop" ? output + 1 : output;
    if (inner == nullptr || place >= (*inner)->outputs.size()) continue;
    const torch::ScalarType type = (*inner)->outputs[place].type;
    if (type != torch::ScalarType::Undefined) return type;
  }
  return std::nullopt;
}

torch::ScalarType type_of_output(const Node& node, size_t output, const Types& types) {
  if (node.domain == "ai.onnx.ml") {
    const bool label = output == 0 && node.op.ends_with("Classifier");
    const bool keeps = node.op == "ArrayFeatureExtractor" || node.op == "Binarizer";
    if (!keeps) return label ? torch::kLong : torch::kFloat;
  }
  if (const auto type = type_inside(node, output)) return *type;
  if (node.op == "EmbedLayerNormalization") return output == 1 ? torch::kInt : torch::kFloat;
  if (node.op == "MatMulInteger" || node.op == "ConvInteger") return torch::kInt;
  if (node.op == "DynamicQuantizeLinear") return output == 1 ? torch::kFloat : torch::kByte;
  const bool plain = node.op == "MatMulIntegerToFloat" || node.op == "DynamicQuantizeMatMul" ||
                     (node.op == "QGemm" && node.inputs.size() < 8);
  if (plain) return torch::kFloat;
  if (has_traits(node, kTruths)) return torch::kBool;
  const bool places = output == 1 && (node.op == "TopK" || node.op == "MaxPool");
  if (places || has_traits(node, kIndices)) return torch::kLong;
  for (const char* name : {"to", "dtype", "output_dtype"}) {
    const auto found = node.attributes.find(name);
    if (found == node.attributes.end()) continue;
    const auto* number = std::get_if<int64_t>(&found->second);
    if (number != nullptr && *number != 0) return type_of_number(*number, node);
  }
  if (node.op == "Constant" || node.op == "ConstantOfShape") {
    for (const auto& [name, value] : node.attributes) {
      if (const auto* tensor = std::get_if<torch::Tensor>(&value)) return tensor->scalar_type();
    }
    const bool integers =
        node.attributes.contains("value_int") || node.attributes.contains("value_ints");
    return integers ? torch::kLong : torch::kFloat;
  }
  if (node.op == "QuantizeLinear" && node.inputs.size() < 3) return torch::kByte;
  const size_t input = typed_input(node.op);
  const auto found = input < node.inputs.size() ? types.find(node.inputs[input]) : types.end();
  return found == types.end() ? torch::kFloat : found->second;
}

}  // namespace

std::map<std::string, torch::ScalarType> tensor_types(const Graph& graph) {
  Types types;
  for (const TensorInfo& input : graph.inputs) types[input.name] = input.type;
  for (const auto& [name, tensor] : graph.initializers) types[name] = tensor.scalar_type();
  for (const Node& node : graph.nodes) {
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (!node.outputs[i].empty()) types[node.outputs[i]] = type_of_output(node, i, types);
    }
  }
  return types;
}

}  // namespace fcp
