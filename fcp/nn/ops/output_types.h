// The rules by which the types of an operator's outputs follow from those of its inputs: a column
// of operators.inc. type_of_first, which holds for most, is in op_traits.h.
// Tested by tests/nn/graph/tensor_types_test.cc.
#pragma once

#include "fcp/nn/ops/op_traits.h"

namespace fcp {

#define FCP_TYPE_RULE(name) \
  ElementType name(const Node& node, size_t output, const std::vector<ElementType>& inputs);
FCP_TYPE_RULE(type_of_second)
FCP_TYPE_RULE(type_of_third)
FCP_TYPE_RULE(float_type)
FCP_TYPE_RULE(int32_type)
FCP_TYPE_RULE(int64_type)
FCP_TYPE_RULE(truth_type)
FCP_TYPE_RULE(type_named_first)    // by an attribute that names a type, else of the first input
FCP_TYPE_RULE(type_named_second)   // … of the second
FCP_TYPE_RULE(type_of_zero_point)  // … of the third, which is the zero point, else uint8
FCP_TYPE_RULE(type_of_constant)    // of the attribute that holds the numbers
FCP_TYPE_RULE(type_and_places)     // the second output is int64
FCP_TYPE_RULE(type_inside)         // as the graph inside declares its outputs
FCP_TYPE_RULE(type_inside_loop)    // … the first of which is the condition
FCP_TYPE_RULE(label_and_floats)    // of a classifier
FCP_TYPE_RULE(floats_and_ints)     // the second output is int32
FCP_TYPE_RULE(bytes_and_scale)     // of DynamicQuantizeLinear: uint8, float, uint8
FCP_TYPE_RULE(float_or_first)      // float without the eighth input
#undef FCP_TYPE_RULE

}  // namespace fcp
