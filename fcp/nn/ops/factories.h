// The factories of all operators, by the file that defines them. Each reads and checks the node's
// attributes; forward() lives beside it.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "fcp/nn/ops/op.h"

namespace fcp {

using OpFactory = std::unique_ptr<Op> (*)(OpArguments&);
using OpPointer = std::unique_ptr<Op>;

// The operators of domain ai.onnx.ml by name: ops/ml/.
const std::map<std::string, OpFactory>& ml_ops();

// Those of domain com.microsoft: contrib.cc.
const std::map<std::string, OpFactory>& contrib_ops();

// contrib_attention.cc
OpPointer make_contrib_attention(OpArguments& arguments);
OpPointer make_multi_head_attention(OpArguments& arguments);

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
OpPointer make_softsign(OpArguments& arguments);
OpPointer make_mish(OpArguments& arguments);
OpPointer make_gelu(OpArguments& arguments);
OpPointer make_swish(OpArguments& arguments);
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
OpPointer make_cast_like(OpArguments& arguments);

// arithmetic.cc
OpPointer make_add(OpArguments& arguments);
OpPointer make_sub(OpArguments& arguments);
OpPointer make_mul(OpArguments& arguments);
OpPointer make_div(OpArguments& arguments);
OpPointer make_mod(OpArguments& arguments);
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
OpPointer make_less_or_equal(OpArguments& arguments);
OpPointer make_greater_or_equal(OpArguments& arguments);
OpPointer make_not(OpArguments& arguments);
OpPointer make_and(OpArguments& arguments);
OpPointer make_or(OpArguments& arguments);
OpPointer make_xor(OpArguments& arguments);

// order.cc
OpPointer make_argmax(OpArguments& arguments);
OpPointer make_argmin(OpArguments& arguments);
OpPointer make_topk(OpArguments& arguments);
OpPointer make_hardmax(OpArguments& arguments);

// pooling.cc
OpPointer make_max_pool(OpArguments& arguments);
OpPointer make_max_unpool(OpArguments& arguments);
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
OpPointer make_space_to_depth(OpArguments& arguments);

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

// attention.cc
OpPointer make_attention(OpArguments& arguments);
OpPointer make_rotary_embedding(OpArguments& arguments);

// control_flow.cc
OpPointer make_if(OpArguments& arguments);
OpPointer make_loop(OpArguments& arguments);
OpPointer make_scan(OpArguments& arguments);

// einsum.cc
OpPointer make_einsum(OpArguments& arguments);

// gather.cc
OpPointer make_gather_elements(OpArguments& arguments);
OpPointer make_gather_nd(OpArguments& arguments);

// generate.cc
OpPointer make_range(OpArguments& arguments);
OpPointer make_eye_like(OpArguments& arguments);
OpPointer make_one_hot(OpArguments& arguments);
OpPointer make_size(OpArguments& arguments);
OpPointer make_non_zero(OpArguments& arguments);

// group_norms.cc
OpPointer make_group_normalization(OpArguments& arguments);
OpPointer make_rms_normalization(OpArguments& arguments);
OpPointer make_lrn(OpArguments& arguments);

// integer_products.cc
OpPointer make_matmul_integer(OpArguments& arguments);
OpPointer make_qlinear_matmul(OpArguments& arguments);

// norms.cc
OpPointer make_reduce_l1(OpArguments& arguments);
OpPointer make_reduce_l2(OpArguments& arguments);
OpPointer make_reduce_sum_square(OpArguments& arguments);
OpPointer make_reduce_log_sum(OpArguments& arguments);
OpPointer make_reduce_log_sum_exp(OpArguments& arguments);
OpPointer make_reduce_prod(OpArguments& arguments);

// bits.cc
OpPointer make_bitwise_and(OpArguments& arguments);
OpPointer make_bitwise_or(OpArguments& arguments);
OpPointer make_bitwise_xor(OpArguments& arguments);
OpPointer make_bitwise_not(OpArguments& arguments);
OpPointer make_bit_shift(OpArguments& arguments);

// col2im.cc
OpPointer make_col2im(OpArguments& arguments);

// deform_conv.cc
OpPointer make_deform_conv(OpArguments& arguments);

// detection.cc
OpPointer make_roi_align(OpArguments& arguments);
OpPointer make_non_max_suppression(OpArguments& arguments);

// quantize.cc
OpPointer make_quantize_linear(OpArguments& arguments);
OpPointer make_dequantize_linear(OpArguments& arguments);
OpPointer make_dynamic_quantize_linear(OpArguments& arguments);

// fourier.cc
OpPointer make_dft(OpArguments& arguments);
OpPointer make_stft(OpArguments& arguments);

// grid_sample.cc
OpPointer make_grid_sample(OpArguments& arguments);

// lp_normalization.cc
OpPointer make_lp_normalization(OpArguments& arguments);

// qlinear.cc
OpPointer make_conv_integer(OpArguments& arguments);
OpPointer make_qlinear_conv(OpArguments& arguments);
OpPointer make_qlinear_add(OpArguments& arguments);
OpPointer make_qlinear_mul(OpArguments& arguments);
OpPointer make_qlinear_sigmoid(OpArguments& arguments);
OpPointer make_qlinear_leaky_relu(OpArguments& arguments);
OpPointer make_qlinear_softmax(OpArguments& arguments);
OpPointer make_qlinear_global_average_pool(OpArguments& arguments);
OpPointer make_qlinear_concat(OpArguments& arguments);
OpPointer make_qgemm(OpArguments& arguments);
OpPointer make_matmul_integer_to_float(OpArguments& arguments);
OpPointer make_dynamic_quantize_matmul(OpArguments& arguments);

// recurrent.cc
OpPointer make_lstm(OpArguments& arguments);
OpPointer make_dynamic_quantize_lstm(OpArguments& arguments);
OpPointer make_gru(OpArguments& arguments);
OpPointer make_rnn(OpArguments& arguments);

// rounding.cc
OpPointer make_ceil(OpArguments& arguments);
OpPointer make_floor(OpArguments& arguments);
OpPointer make_round(OpArguments& arguments);
OpPointer make_sign(OpArguments& arguments);
OpPointer make_is_nan(OpArguments& arguments);
OpPointer make_is_inf(OpArguments& arguments);
OpPointer make_thresholded_relu(OpArguments& arguments);
OpPointer make_shrink(OpArguments& arguments);

// scatter.cc
OpPointer make_scatter_elements(OpArguments& arguments);
OpPointer make_scatter_nd(OpArguments& arguments);
OpPointer make_tensor_scatter(OpArguments& arguments);

// triangular.cc
OpPointer make_trilu(OpArguments& arguments);
OpPointer make_cum_sum(OpArguments& arguments);

// trigonometry.cc
OpPointer make_sin(OpArguments& arguments);
OpPointer make_cos(OpArguments& arguments);
OpPointer make_tan(OpArguments& arguments);
OpPointer make_asin(OpArguments& arguments);
OpPointer make_acos(OpArguments& arguments);
OpPointer make_atan(OpArguments& arguments);
OpPointer make_sinh(OpArguments& arguments);
OpPointer make_cosh(OpArguments& arguments);
OpPointer make_asinh(OpArguments& arguments);
OpPointer make_acosh(OpArguments& arguments);
OpPointer make_atanh(OpArguments& arguments);

// ml/features.cc
OpPointer make_scaler(OpArguments& arguments);
OpPointer make_normalizer(OpArguments& arguments);
OpPointer make_imputer(OpArguments& arguments);
OpPointer make_binarizer(OpArguments& arguments);
OpPointer make_array_feature_extractor(OpArguments& arguments);
OpPointer make_feature_vectorizer(OpArguments& arguments);
OpPointer make_one_hot_encoder(OpArguments& arguments);
OpPointer make_label_encoder(OpArguments& arguments);

// ml/linear.cc
OpPointer make_linear_regressor(OpArguments& arguments);
OpPointer make_linear_classifier(OpArguments& arguments);

// ml/svm.cc
OpPointer make_svm_regressor(OpArguments& arguments);
OpPointer make_svm_classifier(OpArguments& arguments);

// ml/trees.cc
OpPointer make_tree_ensemble_regressor(OpArguments& arguments);
OpPointer make_tree_ensemble_classifier(OpArguments& arguments);
OpPointer make_tree_ensemble(OpArguments& arguments);

}  // namespace fcp
