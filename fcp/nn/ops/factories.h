// The functions that make operators of nodes. Each reads and checks the node's attributes;
// forward() lives beside it. operators.inc lists them.
#pragma once

#include <memory>

#include "fcp/nn/ops/op.h"

namespace fcp {

using OpPointer = std::unique_ptr<Op>;
using OpFactory = OpPointer (*)(OpArguments&);

#define FCP_OPERATOR(domain, name, make, traits) OpPointer make(OpArguments& arguments);
#include "fcp/nn/ops/operators.inc"
#undef FCP_OPERATOR

}  // namespace fcp
