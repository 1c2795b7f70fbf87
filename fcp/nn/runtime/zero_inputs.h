// Inputs of zeros, for what can be told of a network by running it: shapes, and where rows go.
// Tested by tests/nn/graph/select_first_test.cc and tests/bounds/moved_rows_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fcp/nn/graph/graph.h"
#include "fcp/nn/ops/op.h"

namespace fcp {

// So many rows of zeros for each input; empty where the file fixes another number of rows, or does
// not tell all other dimensions.
Tensors zero_inputs(const Graph& graph, int64_t rows);

// The tensors of these names for those inputs; empty likewise.
Tensors values_at_zero(const Graph& graph, const std::vector<std::string>& names, int64_t rows);

}  // namespace fcp
