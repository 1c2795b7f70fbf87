#include "fcp/nn/graph/tensor_types.h"

#include <vector>

#include "fcp/nn/ops/op_traits.h"

namespace fcp {

std::map<std::string, ElementType> tensor_types(const Graph& graph) {
  std::map<std::string, ElementType> types;
  for (const TensorInfo& input : graph.inputs) types[input.name] = input.type;
  for (const auto& [name, tensor] : graph.initializers) types[name] = tensor.type();
  for (const Node& node : graph.nodes) {
    std::vector<ElementType> inputs;
    for (const std::string& name : node.inputs) {
      const auto found = types.find(name);
      inputs.push_back(found == types.end() ? ElementType::kFloat : found->second);
    }
    const TypeRule rule = facts_of(node).type;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (!node.outputs[i].empty()) types[node.outputs[i]] = rule(node, i, inputs);
    }
  }
  return types;
}

}  // namespace fcp
