// What an operator's output takes, told from its inputs before it runs, by the column `bytes` of
// operators.inc. Tested by tests/nn/runtime/tensor_memory_test.cc.
#pragma once

#include "fcp/nn/ops/op.h"
#include "fcp/nn/ops/op_traits.h"

namespace fcp {

// At least so many bytes, where it can make more than it is given; 0: not known. The first input is
// there.
double output_bytes(const Node& node, const Tensors& inputs);

}  // namespace fcp
