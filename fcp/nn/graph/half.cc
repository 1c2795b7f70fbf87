#include "fcp/nn/graph/half.h"

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "fcp/nn/runtime/element_types.h"

namespace fcp {
namespace {

constexpr int64_t kOnnxFloat = 1, kOnnxHalf = 10, kOnnxDouble = 11, kOnnxBrainFloat = 16;

bool is_half(ElementType type) {
  return type == ElementType::kHalf || type == ElementType::kBFloat16;
}

// Attributes that hold a number of an element type.
const std::set<std::string>& type_attributes() {
  static const std::set<std::string> names = {"to", "dtype", "output_dtype"};
  return names;
}

// Floating-point types become float32, those of 16 bits alone, or float64, all of them.
void widen(Graph& graph, bool to_double) {
  const ElementType wide = to_double ? ElementType::kDouble : ElementType::kFloat;
  const auto grows = [&](ElementType type) {
    return is_half(type) || (to_double && type == ElementType::kFloat);
  };
  const auto widen_tensor = [&](ConstantTensor& tensor) {
    if (grows(tensor.type())) tensor = tensor.tensor().to(scalar_type(wide));
  };
  for (auto& [name, tensor] : graph.initializers) widen_tensor(tensor);
  for (auto* infos : {&graph.inputs, &graph.outputs}) {
    for (TensorInfo& info : *infos) {
      if (grows(info.type)) info.type = wide;
    }
  }
  for (Node& node : graph.nodes) {
    for (auto& [name, value] : node.attributes) {
      if (auto* tensor = std::get_if<ConstantTensor>(&value)) widen_tensor(*tensor);
      if (auto* inner = std::get_if<Subgraph>(&value)) {
        Graph grown = **inner;
        widen(grown, to_double);
        *inner = std::make_shared<const Graph>(std::move(grown));
      }
      auto* type = std::get_if<int64_t>(&value);
      if (type == nullptr || !type_attributes().contains(name)) continue;
      const bool half = *type == kOnnxHalf || *type == kOnnxBrainFloat;
      if (half || (to_double && *type == kOnnxFloat)) *type = to_double ? kOnnxDouble : kOnnxFloat;
    }
  }
}

}  // namespace

void widen_half(Graph& graph) { widen(graph, /*to_double=*/false); }

Graph in_double(Graph graph) {
  widen(graph, /*to_double=*/true);
  return graph;
}

}  // namespace fcp
