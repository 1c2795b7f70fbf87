#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/nn/ops/factories.h"

namespace fcp {
namespace {

const std::map<std::string, OpFactory>& table() {
  static const std::map<std::string, OpFactory> ops = {
      {"Abs", make_abs},
      {"Acos", make_acos},
      {"Acosh", make_acosh},
      {"Add", make_add},
      {"And", make_and},
      {"ArgMax", make_argmax},
      {"ArgMin", make_argmin},
      {"Asin", make_asin},
      {"Asinh", make_asinh},
      {"Atan", make_atan},
      {"Atanh", make_atanh},
      {"Attention", make_attention},
      {"AveragePool", make_average_pool},
      {"BatchNormalization", make_batch_normalization},
      {"BitShift", make_bit_shift},
      {"BitwiseAnd", make_bitwise_and},
      {"BitwiseNot", make_bitwise_not},
      {"BitwiseOr", make_bitwise_or},
      {"BitwiseXor", make_bitwise_xor},
      {"Cast", make_cast},
      {"CastLike", make_cast_like},
      {"Ceil", make_ceil},
      {"Celu", make_celu},
      {"Clip", make_clip},
      {"Col2Im", make_col2im},
      {"Concat", make_concat},
      {"Constant", make_constant},
      {"ConstantOfShape", make_constant_of_shape},
      {"Conv", make_conv},
      {"ConvInteger", make_conv_integer},
      {"ConvTranspose", make_conv_transpose},
      {"Cos", make_cos},
      {"Cosh", make_cosh},
      {"CumSum", make_cum_sum},
      {"DFT", make_dft},
      {"DeformConv", make_deform_conv},
      {"DepthToSpace", make_depth_to_space},
      {"DequantizeLinear", make_dequantize_linear},
      {"Div", make_div},
      {"Dropout", make_dropout},
      {"DynamicQuantizeLinear", make_dynamic_quantize_linear},
      {"Einsum", make_einsum},
      {"Elu", make_elu},
      {"Equal", make_equal},
      {"Erf", make_erf},
      {"Exp", make_exp},
      {"Expand", make_expand},
      {"EyeLike", make_eye_like},
      {"Flatten", make_flatten},
      {"Floor", make_floor},
      {"GRU", make_gru},
      {"Gather", make_gather},
      {"GatherElements", make_gather_elements},
      {"GatherND", make_gather_nd},
      {"Gelu", make_gelu},
      {"Gemm", make_gemm},
      {"GlobalAveragePool", make_global_average_pool},
      {"GlobalMaxPool", make_global_max_pool},
      {"Greater", make_greater},
      {"GreaterOrEqual", make_greater_or_equal},
      {"GridSample", make_grid_sample},
      {"GroupNormalization", make_group_normalization},
      {"HardSigmoid", make_hard_sigmoid},
      {"HardSwish", make_hard_swish},
      {"Hardmax", make_hardmax},
      {"If", make_if},
      {"Identity", make_identity},
      {"InstanceNormalization", make_instance_normalization},
      {"IsInf", make_is_inf},
      {"IsNaN", make_is_nan},
      {"LRN", make_lrn},
      {"LSTM", make_lstm},
      {"LayerNormalization", make_layer_normalization},
      {"LeakyRelu", make_leaky_relu},
      {"Less", make_less},
      {"LessOrEqual", make_less_or_equal},
      {"Log", make_log},
      {"LogSoftmax", make_log_softmax},
      {"Loop", make_loop},
      {"LpNormalization", make_lp_normalization},
      {"MatMul", make_matmul},
      {"MatMulInteger", make_matmul_integer},
      {"Max", make_max},
      {"MaxPool", make_max_pool},
      {"MaxUnpool", make_max_unpool},
      {"Mean", make_mean},
      {"Min", make_min},
      {"Mish", make_mish},
      {"Mod", make_mod},
      {"Mul", make_mul},
      {"Neg", make_neg},
      {"NonMaxSuppression", make_non_max_suppression},
      {"NonZero", make_non_zero},
      {"Not", make_not},
      {"OneHot", make_one_hot},
      {"Or", make_or},
      {"PRelu", make_prelu},
      {"Pad", make_pad},
      {"Pow", make_pow},
      {"QLinearConv", make_qlinear_conv},
      {"QLinearMatMul", make_qlinear_matmul},
      {"QuantizeLinear", make_quantize_linear},
      {"RMSNormalization", make_rms_normalization},
      {"RNN", make_rnn},
      {"Range", make_range},
      {"Reciprocal", make_reciprocal},
      {"ReduceL1", make_reduce_l1},
      {"ReduceL2", make_reduce_l2},
      {"ReduceLogSum", make_reduce_log_sum},
      {"ReduceLogSumExp", make_reduce_log_sum_exp},
      {"ReduceMax", make_reduce_max},
      {"ReduceMean", make_reduce_mean},
      {"ReduceMin", make_reduce_min},
      {"ReduceProd", make_reduce_prod},
      {"ReduceSum", make_reduce_sum},
      {"ReduceSumSquare", make_reduce_sum_square},
      {"Relu", make_relu},
      {"Reshape", make_reshape},
      {"Resize", make_resize},
      {"RoiAlign", make_roi_align},
      {"RotaryEmbedding", make_rotary_embedding},
      {"Round", make_round},
      {"Scan", make_scan},
      {"Scatter", make_scatter_elements},
      {"ScatterElements", make_scatter_elements},
      {"ScatterND", make_scatter_nd},
      {"Selu", make_selu},
      {"Shape", make_shape},
      {"Shrink", make_shrink},
      {"Sigmoid", make_sigmoid},
      {"Sign", make_sign},
      {"Sin", make_sin},
      {"Sinh", make_sinh},
      {"Size", make_size},
      {"Slice", make_slice},
      {"Softmax", make_softmax},
      {"Softplus", make_softplus},
      {"SpaceToDepth", make_space_to_depth},
      {"Softsign", make_softsign},
      {"Split", make_split},
      {"Sqrt", make_sqrt},
      {"Squeeze", make_squeeze},
      {"STFT", make_stft},
      {"Sub", make_sub},
      {"Sum", make_sum},
      {"Swish", make_swish},
      {"Tan", make_tan},
      {"Tanh", make_tanh},
      {"TensorScatter", make_tensor_scatter},
      {"ThresholdedRelu", make_thresholded_relu},
      {"Tile", make_tile},
      {"TopK", make_topk},
      {"Transpose", make_transpose},
      {"Trilu", make_trilu},
      {"Unsqueeze", make_unsqueeze},
      {"Upsample", make_upsample},
      {"Where", make_where},
      {"Xor", make_xor},
  };
  return ops;
}

bool draws_at_random(const Node& node) {
  static const std::set<std::string> ops = {"Bernoulli",        "Multinomial",
                                            "RandomNormal",     "RandomUniform",
                                            "RandomNormalLike", "RandomUniformLike"};
  return (node.domain.empty() || node.domain == "ai.onnx") && ops.contains(node.op);
}

// Null where nothing is known of it. ONNX Runtime writes one operator of its own in ONNX's domain.
const OpFactory* factory_of(const Node& node) {
  const bool plain = node.domain.empty() || node.domain == "ai.onnx";
  const bool stray = plain && node.op == "SimplifiedLayerNormalization";
  const std::map<std::string, OpFactory>* ops = nullptr;
  if (plain) ops = &table();
  if (node.domain == "ai.onnx.ml") ops = &ml_ops();
  if (node.domain == "com.microsoft" || stray) ops = &contrib_ops();
  if (ops == nullptr) return nullptr;
  const auto found = ops->find(node.op);
  return found == ops->end() ? nullptr : &found->second;
}

}  // namespace

std::unique_ptr<Op> make_op(const Node& node, int64_t opset) {
  const std::string domain = node.domain.empty() ? "ai.onnx" : node.domain;
  const OpFactory* factory = factory_of(node);
  if (draws_at_random(node)) {
    fail(describe(node), ": draws random numbers, so that a row would get another answer each ",
         "time; export a network whose answer is a function of its input (in PyTorch, call ",
         "model.eval() first)");
  }
  if (factory == nullptr) {
    fail(describe(node), ": operator ", node.op, " of domain '", domain,
         "' is not supported; docs/networks.md lists what is");
  }
  OpArguments arguments(node, opset);
  std::unique_ptr<Op> op = (*factory)(arguments);
  arguments.finish();
  return op;
}

std::vector<std::string> unsupported_nodes(const Graph& graph) {
  std::vector<std::string> messages;
  std::map<std::string, std::pair<size_t, size_t>> seen;  // operator to message and count
  for (const Node& node : graph.nodes) {
    try {
      make_op(node, graph.opset);
    } catch (const Error& error) {
      const bool known = factory_of(node) != nullptr;
      const std::string key = known ? describe(node) : node.domain + "/" + node.op;
      const auto [entry, fresh] = seen.emplace(key, std::pair(messages.size(), size_t{0}));
      if (fresh) messages.emplace_back(error.what());
      ++entry->second.second;
    }
  }
  for (const auto& [key, entry] : seen) {
    if (entry.second > 1) messages[entry.first] += concat(" (", entry.second, " nodes)");
  }
  return messages;
}

void check_supported(const Graph& graph) {
  const std::vector<std::string> messages = unsupported_nodes(graph);
  std::string text;
  for (const std::string& message : messages) text += (text.empty() ? "" : "; ") + message;
  if (!messages.empty()) fail(text);
}

std::vector<std::string> supported_ops() {
  std::vector<std::string> names;
  for (const auto& [name, factory] : table()) names.push_back(name);
  for (const auto& [name, factory] : ml_ops()) names.push_back("ai.onnx.ml." + name);
  for (const auto& [name, factory] : contrib_ops()) names.push_back("com.microsoft." + name);
  return names;
}

}  // namespace fcp
