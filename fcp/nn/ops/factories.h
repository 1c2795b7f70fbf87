// What the files of this folder define for registry.cc: functions that make operators of nodes,
// each of which reads and checks the node's attributes. operators.inc lists them; those that other
// operators are made of are declared here. That no file includes the list but registry.cc lets a
// new operator compile alone.
#pragma once

#include <memory>

#include "fcp/nn/ops/op.h"

namespace fcp {

using OpPointer = std::unique_ptr<Op>;
using OpFactory = OpPointer (*)(OpArguments&);

OpPointer make_conv(OpArguments& arguments);
OpPointer make_dynamic_quantize_linear(OpArguments& arguments);
OpPointer make_gemm(OpArguments& arguments);

}  // namespace fcp
