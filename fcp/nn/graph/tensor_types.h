// The element types of a graph's tensors, found without running it.
// Tested by tests/nn/graph/tensor_types_test.cc.
#pragma once

#include <map>
#include <string>

#include "fcp/nn/graph/graph.h"

namespace fcp {

// By name, for inputs, initializers and every output of a node, by the rules of operators.inc.
std::map<std::string, ElementType> tensor_types(const Graph& graph);

}  // namespace fcp
