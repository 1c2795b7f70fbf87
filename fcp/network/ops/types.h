// ONNX's numbers of element types, as attributes such as Cast's `to` give them.
#pragma once

#include <cstdint>

#include <torch/types.h>

#include "fcp/network/graph.h"

namespace fcp {

// An Error names the node where the type is not one that fcp has.
torch::ScalarType type_of_number(int64_t type, const Node& node);

// The other way round.
int64_t number_of_type(torch::ScalarType type);

}  // namespace fcp
