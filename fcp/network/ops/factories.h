// The factories of all operators, by the file that defines them. Each reads and checks the node's
// attributes; forward() lives beside it.
#pragma once

#include <memory>

#include "fcp/network/op.h"

namespace fcp {

using OpFactory = std::unique_ptr<Op> (*)(OpArguments&);
using OpPointer = std::unique_ptr<Op>;

// gemm.cc
OpPointer make_gemm(OpArguments& arguments);
OpPointer make_matmul(OpArguments& arguments);

// conv.cc
OpPointer make_conv(OpArguments& arguments);
OpPointer make_conv_transpose(OpArguments& arguments);

// normalization.cc
OpPointer make_batch_normalization(OpArguments& arguments);
OpPointer make_instance_normalization(OpArguments& arguments);
OpPointer make_layer_normalization(OpArguments& arguments);

// activations.cc
OpPointer make_relu(OpArguments& arguments);
OpPointer make_leaky_relu(OpArguments& arguments);
OpPointer make_prelu(OpArguments& arguments);
OpPointer make_elu(OpArguments& arguments);
OpPointer make_selu(OpArguments& arguments);
OpPointer make_celu(OpArguments& arguments);
OpPointer make_sigmoid(OpArguments& arguments);
OpPointer make_hard_sigmoid(OpArguments& arguments);
OpPointer make_hard_swish(OpArguments& arguments);
OpPointer make_tanh(OpArguments& arguments);
OpPointer make_softplus(OpArguments& arguments);
OpPointer make_gelu(OpArguments& arguments);
OpPointer make_clip(OpArguments& arguments);
OpPointer make_dropout(OpArguments& arguments);

// softmax.cc
OpPointer make_softmax(OpArguments& arguments);
OpPointer make_log_softmax(OpArguments& arguments);

// unary.cc
OpPointer make_erf(OpArguments& arguments);
OpPointer make_exp(OpArguments& arguments);
OpPointer make_log(OpArguments& arguments);
OpPointer make_sqrt(OpArguments& arguments);
OpPointer make_reciprocal(OpArguments& arguments);
OpPointer make_abs(OpArguments& arguments);
OpPointer make_neg(OpArguments& arguments);
OpPointer make_identity(OpArguments& arguments);
OpPointer make_cast(OpArguments& arguments);

// arithmetic.cc
OpPointer make_add(OpArguments& arguments);
OpPointer make_sub(OpArguments& arguments);
OpPointer make_mul(OpArguments& arguments);
OpPointer make_div(OpArguments& arguments);
OpPointer make_pow(OpArguments& arguments);
OpPointer make_min(OpArguments& arguments);
OpPointer make_max(OpArguments& arguments);
OpPointer make_sum(OpArguments& arguments);
OpPointer make_mean(OpArguments& arguments);

// logic.cc
OpPointer make_where(OpArguments& arguments);
OpPointer make_equal(OpArguments& arguments);
OpPointer make_greater(OpArguments& arguments);
OpPointer make_less(OpArguments& arguments);
OpPointer make_argmax(OpArguments& arguments);

// pooling.cc
OpPointer make_max_pool(OpArguments& arguments);
OpPointer make_average_pool(OpArguments& arguments);
OpPointer make_global_average_pool(OpArguments& arguments);
OpPointer make_global_max_pool(OpArguments& arguments);

// reduce.cc
OpPointer make_reduce_mean(OpArguments& arguments);
OpPointer make_reduce_sum(OpArguments& arguments);
OpPointer make_reduce_max(OpArguments& arguments);
OpPointer make_reduce_min(OpArguments& arguments);

// shape.cc
OpPointer make_flatten(OpArguments& arguments);
OpPointer make_reshape(OpArguments& arguments);
OpPointer make_transpose(OpArguments& arguments);
OpPointer make_squeeze(OpArguments& arguments);
OpPointer make_unsqueeze(OpArguments& arguments);
OpPointer make_shape(OpArguments& arguments);
OpPointer make_depth_to_space(OpArguments& arguments);

// slice.cc
OpPointer make_concat(OpArguments& arguments);
OpPointer make_split(OpArguments& arguments);
OpPointer make_slice(OpArguments& arguments);
OpPointer make_gather(OpArguments& arguments);

// expand.cc
OpPointer make_pad(OpArguments& arguments);
OpPointer make_expand(OpArguments& arguments);
OpPointer make_tile(OpArguments& arguments);
OpPointer make_constant(OpArguments& arguments);
OpPointer make_constant_of_shape(OpArguments& arguments);

// resize.cc
OpPointer make_resize(OpArguments& arguments);
OpPointer make_upsample(OpArguments& arguments);

}  // namespace fcp
