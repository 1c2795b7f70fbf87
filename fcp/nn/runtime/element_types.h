// Element types of a graph as libtorch's, and back.
#pragma once

#include <torch/types.h>

#include "fcp/nn/graph/constant_tensor.h"

namespace fcp {

torch::ScalarType scalar_type(ElementType type);
// An Error for a type that ElementType lacks.
ElementType element_type(torch::ScalarType type);

}  // namespace fcp
