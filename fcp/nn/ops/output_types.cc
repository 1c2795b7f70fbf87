#include "fcp/nn/ops/output_types.h"

#include "fcp/nn/ops/types.h"

namespace fcp {
namespace {

using InputTypes = std::vector<torch::ScalarType>;

torch::ScalarType nth_type(const InputTypes& inputs, size_t at) {
  return at < inputs.size() ? inputs[at] : torch::kFloat;
}

// Undefined where no attribute names one.
torch::ScalarType named_type(const Node& node) {
  for (const char* name : {"to", "dtype", "output_dtype"}) {
    const auto found = node.attributes.find(name);
    if (found == node.attributes.end()) continue;
    const auto* number = std::get_if<int64_t>(&found->second);
    if (number != nullptr && *number != 0) return type_of_number(*number, node);
  }
  return torch::ScalarType::Undefined;
}

torch::ScalarType inner_type(const Node& node, size_t place, const InputTypes& inputs) {
  for (const auto& [name, value] : node.attributes) {
    const auto* inner = std::get_if<Subgraph>(&value);
    if (inner == nullptr || place >= (*inner)->outputs.size()) continue;
    const torch::ScalarType type = (*inner)->outputs[place].type;
    if (type != torch::ScalarType::Undefined) return type;
  }
  return nth_type(inputs, 0);
}

}  // namespace

torch::ScalarType type_of_first(const Node&, size_t, const InputTypes& inputs) {
  return nth_type(inputs, 0);
}
torch::ScalarType type_of_second(const Node&, size_t, const InputTypes& inputs) {
  return nth_type(inputs, 1);
}
torch::ScalarType type_of_third(const Node&, size_t, const InputTypes& inputs) {
  return nth_type(inputs, 2);
}
torch::ScalarType float_type(const Node&, size_t, const InputTypes&) { return torch::kFloat; }
torch::ScalarType int32_type(const Node&, size_t, const InputTypes&) { return torch::kInt; }
torch::ScalarType int64_type(const Node&, size_t, const InputTypes&) { return torch::kLong; }
torch::ScalarType truth_type(const Node&, size_t, const InputTypes&) { return torch::kBool; }

torch::ScalarType type_named_first(const Node& node, size_t, const InputTypes& inputs) {
  const torch::ScalarType named = named_type(node);
  return named == torch::ScalarType::Undefined ? nth_type(inputs, 0) : named;
}

torch::ScalarType type_named_second(const Node& node, size_t, const InputTypes& inputs) {
  const torch::ScalarType named = named_type(node);
  return named == torch::ScalarType::Undefined ? nth_type(inputs, 1) : named;
}

torch::ScalarType type_of_zero_point(const Node& node, size_t, const InputTypes& inputs) {
  const torch::ScalarType named = named_type(node);
  if (named != torch::ScalarType::Undefined) return named;
  return inputs.size() < 3 ? torch::kByte : nth_type(inputs, 2);
}

torch::ScalarType type_of_constant(const Node& node, size_t, const InputTypes&) {
  for (const auto& [name, value] : node.attributes) {
    if (const auto* tensor = std::get_if<torch::Tensor>(&value)) return tensor->scalar_type();
  }
  const bool integers =
      node.attributes.contains("value_int") || node.attributes.contains("value_ints");
  return integers ? torch::kLong : torch::kFloat;
}

torch::ScalarType type_and_places(const Node&, size_t output, const InputTypes& inputs) {
  return output == 1 ? torch::kLong : nth_type(inputs, 0);
}

torch::ScalarType type_inside(const Node& node, size_t output, const InputTypes& inputs) {
  return inner_type(node, output, inputs);
}

torch::ScalarType type_inside_loop(const Node& node, size_t output, const InputTypes& inputs) {
  return inner_type(node, output + 1, inputs);
}

torch::ScalarType label_and_floats(const Node&, size_t output, const InputTypes&) {
  return output == 0 ? torch::kLong : torch::kFloat;
}

torch::ScalarType floats_and_ints(const Node&, size_t output, const InputTypes&) {
  return output == 1 ? torch::kInt : torch::kFloat;
}

torch::ScalarType bytes_and_scale(const Node&, size_t output, const InputTypes&) {
  return output == 1 ? torch::kFloat : torch::kByte;
}

torch::ScalarType float_or_first(const Node& node, size_t, const InputTypes& inputs) {
  return node.inputs.size() < 8 ? torch::kFloat : nth_type(inputs, 0);
}

}  // namespace fcp
