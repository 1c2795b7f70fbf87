#include "fcp/network/half.h"

#include <memory>
#include <set>
#include <string>
#include <utility>

namespace fcp {
namespace {

constexpr int64_t kOnnxFloat = 1, kOnnxHalf = 10, kOnnxBrainFloat = 16;

bool is_half(torch::ScalarType type) { return type == torch::kHalf || type == torch::kBFloat16; }

void widen(torch::Tensor& tensor) {
  if (is_half(tensor.scalar_type())) tensor = tensor.to(torch::kFloat);
}

// Attributes that hold a number of an element type.
const std::set<std::string>& type_attributes() {
  static const std::set<std::string> names = {"to", "dtype", "output_dtype"};
  return names;
}

}  // namespace

void widen_half(Graph& graph) {
  const auto widen_inside = [](Subgraph& inner) {
    Graph wide = *inner;
    widen_half(wide);
    inner = std::make_shared<const Graph>(std::move(wide));
  };
  for (auto& [name, tensor] : graph.initializers) widen(tensor);
  for (auto* infos : {&graph.inputs, &graph.outputs}) {
    for (TensorInfo& info : *infos) {
      if (is_half(info.type)) info.type = torch::kFloat;
    }
  }
  for (Node& node : graph.nodes) {
    for (auto& [name, value] : node.attributes) {
      if (auto* tensor = std::get_if<torch::Tensor>(&value)) widen(*tensor);
      if (auto* inner = std::get_if<Subgraph>(&value)) widen_inside(*inner);
      auto* type = std::get_if<int64_t>(&value);
      const bool names_type = type != nullptr && type_attributes().contains(name);
      if (names_type && (*type == kOnnxHalf || *type == kOnnxBrainFloat)) *type = kOnnxFloat;
    }
  }
}

}  // namespace fcp
