// Numbers on their way to inputs that are integers or doubles: they keep all their digits, and what
// is not a number of the input's type is an Error instead of a wrong answer.
//
// Tested by tests/pipeline/network_inputs_test.cc, tests/python/test_inputs.py.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/data/rows.h"
#include "fcp/network/graph.h"

namespace fcp {

// Whether an input's numbers are kept as doubles.
bool wants_exact(const Graph& network);

// An Error where a number is not one of the type of the input that gets it: a fraction, or beyond
// its range, or beyond what is exact in x. `place` says where a row of x stands.
void check_input_numbers(const torch::Tensor& x, const Graph& network,
                         const std::function<std::string(int64_t)>& place,
                         const std::vector<std::string>& column_names = {});

// The same of all rows of a source, as they are read.
std::unique_ptr<RowSource> with_checked_numbers(std::unique_ptr<RowSource> rows,
                                                const Graph& network);

}  // namespace fcp
