#include "fcp/nn/ops/output_types.h"

#include "fcp/nn/ops/types.h"

namespace fcp {
namespace {

using InputTypes = std::vector<ElementType>;

ElementType nth_type(const InputTypes& inputs, size_t at) {
  return at < inputs.size() ? inputs[at] : ElementType::kFloat;
}

// Undefined where no attribute names one.
ElementType named_type(const Node& node) {
  for (const char* name : {"to", "dtype", "output_dtype"}) {
    const auto found = node.attributes.find(name);
    if (found == node.attributes.end()) continue;
    const auto* number = std::get_if<int64_t>(&found->second);
    if (number != nullptr && *number != 0) return type_of_number(*number, node);
  }
  return ElementType::kUndefined;
}

ElementType inner_type(const Node& node, size_t place, const InputTypes& inputs) {
  for (const auto& [name, value] : node.attributes) {
    const auto* inner = std::get_if<Subgraph>(&value);
    if (inner == nullptr || place >= (*inner)->outputs.size()) continue;
    const ElementType type = (*inner)->outputs[place].type;
    if (type != ElementType::kUndefined) return type;
  }
  return nth_type(inputs, 0);
}

}  // namespace

ElementType type_of_first(const Node&, size_t, const InputTypes& inputs) {
  return nth_type(inputs, 0);
}
ElementType type_of_second(const Node&, size_t, const InputTypes& inputs) {
  return nth_type(inputs, 1);
}
ElementType type_of_third(const Node&, size_t, const InputTypes& inputs) {
  return nth_type(inputs, 2);
}
ElementType float_type(const Node&, size_t, const InputTypes&) { return ElementType::kFloat; }
ElementType int32_type(const Node&, size_t, const InputTypes&) { return ElementType::kInt32; }
ElementType int64_type(const Node&, size_t, const InputTypes&) { return ElementType::kInt64; }
ElementType truth_type(const Node&, size_t, const InputTypes&) { return ElementType::kBool; }

ElementType type_named_first(const Node& node, size_t, const InputTypes& inputs) {
  const ElementType named = named_type(node);
  return named == ElementType::kUndefined ? nth_type(inputs, 0) : named;
}

ElementType type_named_second(const Node& node, size_t, const InputTypes& inputs) {
  const ElementType named = named_type(node);
  return named == ElementType::kUndefined ? nth_type(inputs, 1) : named;
}

ElementType type_of_zero_point(const Node& node, size_t, const InputTypes& inputs) {
  const ElementType named = named_type(node);
  if (named != ElementType::kUndefined) return named;
  return inputs.size() < 3 ? ElementType::kUint8 : nth_type(inputs, 2);
}

ElementType type_of_constant(const Node& node, size_t, const InputTypes&) {
  for (const auto& [name, value] : node.attributes) {
    if (const auto* tensor = std::get_if<ConstantTensor>(&value)) return tensor->type();
  }
  const bool integers =
      node.attributes.contains("value_int") || node.attributes.contains("value_ints");
  return integers ? ElementType::kInt64 : ElementType::kFloat;
}

ElementType type_and_places(const Node&, size_t output, const InputTypes& inputs) {
  return output == 1 ? ElementType::kInt64 : nth_type(inputs, 0);
}

ElementType type_inside(const Node& node, size_t output, const InputTypes& inputs) {
  return inner_type(node, output, inputs);
}

ElementType type_inside_loop(const Node& node, size_t output, const InputTypes& inputs) {
  return inner_type(node, output + 1, inputs);
}

ElementType label_and_floats(const Node&, size_t output, const InputTypes&) {
  return output == 0 ? ElementType::kInt64 : ElementType::kFloat;
}

ElementType floats_and_ints(const Node&, size_t output, const InputTypes&) {
  return output == 1 ? ElementType::kInt32 : ElementType::kFloat;
}

ElementType bytes_and_scale(const Node&, size_t output, const InputTypes&) {
  return output == 1 ? ElementType::kFloat : ElementType::kUint8;
}

ElementType float_or_first(const Node& node, size_t, const InputTypes& inputs) {
  return node.inputs.size() < 8 ? ElementType::kFloat : nth_type(inputs, 0);
}

}  // namespace fcp
