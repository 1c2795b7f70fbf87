#include "fcp/nn/runtime/zero_inputs.h"

#include <algorithm>
#include <map>

#include <torch/utils.h>

#include "fcp/nn/graph/cut.h"
#include "fcp/nn/graph/tensor_types.h"
#include "fcp/nn/runtime/network.h"
#include "fcp/nn/runtime/tensor_memory.h"

namespace fcp {

Tensors zero_inputs(const Graph& graph, int64_t rows) {
  Tensors inputs;
  for (const TensorInfo& info : graph.inputs) {
    std::vector<int64_t> shape = info.shape;
    const bool known = info.known_rank && !shape.empty() &&
                       (shape[0] == kDynamic || shape[0] == rows) &&
                       std::find(shape.begin() + 1, shape.end(), kDynamic) == shape.end();
    if (!known) return {};
    shape[0] = rows;
    inputs.push_back(declared_zeros(shape, info.type, info.name));
  }
  return inputs;
}

Tensors values_at_zero(const Graph& graph, const std::vector<std::string>& names, int64_t rows) {
  const Tensors inputs = zero_inputs(graph, rows);
  if (inputs.empty()) return {};
  std::vector<TensorInfo> wanted;
  const std::map<std::string, ElementType> types = tensor_types(graph);
  for (const std::string& name : names) wanted.push_back({name, types.at(name), false, {}, {}});
  const torch::NoGradGuard no_gradients;
  return Network(extract(graph, graph.inputs, wanted)).run(inputs);
}

}  // namespace fcp
