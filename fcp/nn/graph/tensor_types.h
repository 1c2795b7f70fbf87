// The element types of a graph's tensors, found without running it.
#pragma once

#include <map>
#include <string>

#include <torch/types.h>

#include "fcp/nn/graph/graph.h"

namespace fcp {

// By name, for inputs, initializers and every output of a node. Operators whose outputs are of a
// type of their own are known; all others give the type of their first input.
std::map<std::string, torch::ScalarType> tensor_types(const Graph& graph);

}  // namespace fcp
