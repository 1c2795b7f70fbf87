// What an operator's output takes, told from its inputs before it runs: a column of operators.inc,
// for those that can make more than they are given. At least so many bytes; 0: not known.
// Tested by tests/nn/runtime/tensor_memory_test.cc.
#pragma once

#include "fcp/nn/ops/op_traits.h"

namespace fcp {

#define FCP_BYTES_RULE(name) \
  double name(const Node& node, const std::vector<torch::Tensor>& inputs);
FCP_BYTES_RULE(broadcast_bytes)  // the inputs are stretched against each other
FCP_BYTES_RULE(choice_bytes)     // … the first of which, truth values, chooses of the others
FCP_BYTES_RULE(product_bytes)    // matrices, inputs 0 and 1
FCP_BYTES_RULE(integer_bytes)    // … of bytes, summed in int32
FCP_BYTES_RULE(quantized_bytes)  // … inputs 0 and 3
FCP_BYTES_RULE(einsum_bytes)
FCP_BYTES_RULE(conv_bytes)            // images and filters, inputs 0 and 1
FCP_BYTES_RULE(integer_conv_bytes)    // … of bytes, summed in int32
FCP_BYTES_RULE(quantized_conv_bytes)  // … inputs 0 and 3
FCP_BYTES_RULE(conv_transpose_bytes)
FCP_BYTES_RULE(gather_bytes)
FCP_BYTES_RULE(gather_nd_bytes)
FCP_BYTES_RULE(gather_elements_bytes)
FCP_BYTES_RULE(joined_bytes)  // all inputs side by side
FCP_BYTES_RULE(tiled_bytes)
FCP_BYTES_RULE(expanded_bytes)
FCP_BYTES_RULE(filled_bytes)  // a shape alone
FCP_BYTES_RULE(one_hot_bytes)
FCP_BYTES_RULE(padded_bytes)
FCP_BYTES_RULE(resized_bytes)    // sizes or scales
FCP_BYTES_RULE(upsampled_bytes)  // scales alone
FCP_BYTES_RULE(range_bytes)
FCP_BYTES_RULE(places_bytes)   // int64 places of all that is not 0
FCP_BYTES_RULE(sampled_bytes)  // an image at the places of a grid
#undef FCP_BYTES_RULE

}  // namespace fcp
