#include <algorithm>
#include <map>

#include "fcp/base/error.h"
#include "fcp/network/ops/factories.h"

namespace fcp {
namespace {

const std::map<std::string, OpFactory>& table() {
  static const std::map<std::string, OpFactory> ops = {
      {"Abs", make_abs},
      {"Add", make_add},
      {"ArgMax", make_argmax},
      {"AveragePool", make_average_pool},
      {"BatchNormalization", make_batch_normalization},
      {"Cast", make_cast},
      {"Celu", make_celu},
      {"Clip", make_clip},
      {"Concat", make_concat},
      {"Constant", make_constant},
      {"ConstantOfShape", make_constant_of_shape},
      {"Conv", make_conv},
      {"ConvTranspose", make_conv_transpose},
      {"DepthToSpace", make_depth_to_space},
      {"Div", make_div},
      {"Dropout", make_dropout},
      {"Elu", make_elu},
      {"Equal", make_equal},
      {"Erf", make_erf},
      {"Exp", make_exp},
      {"Expand", make_expand},
      {"Flatten", make_flatten},
      {"Gather", make_gather},
      {"Gelu", make_gelu},
      {"Gemm", make_gemm},
      {"GlobalAveragePool", make_global_average_pool},
      {"GlobalMaxPool", make_global_max_pool},
      {"Greater", make_greater},
      {"HardSigmoid", make_hard_sigmoid},
      {"HardSwish", make_hard_swish},
      {"Identity", make_identity},
      {"InstanceNormalization", make_instance_normalization},
      {"LayerNormalization", make_layer_normalization},
      {"LeakyRelu", make_leaky_relu},
      {"Less", make_less},
      {"Log", make_log},
      {"LogSoftmax", make_log_softmax},
      {"MatMul", make_matmul},
      {"Max", make_max},
      {"MaxPool", make_max_pool},
      {"Mean", make_mean},
      {"Min", make_min},
      {"Mul", make_mul},
      {"Neg", make_neg},
      {"PRelu", make_prelu},
      {"Pad", make_pad},
      {"Pow", make_pow},
      {"Reciprocal", make_reciprocal},
      {"ReduceMax", make_reduce_max},
      {"ReduceMean", make_reduce_mean},
      {"ReduceMin", make_reduce_min},
      {"ReduceSum", make_reduce_sum},
      {"Relu", make_relu},
      {"Reshape", make_reshape},
      {"Resize", make_resize},
      {"Selu", make_selu},
      {"Shape", make_shape},
      {"Sigmoid", make_sigmoid},
      {"Slice", make_slice},
      {"Softmax", make_softmax},
      {"Softplus", make_softplus},
      {"Split", make_split},
      {"Sqrt", make_sqrt},
      {"Squeeze", make_squeeze},
      {"Sub", make_sub},
      {"Sum", make_sum},
      {"Tanh", make_tanh},
      {"Tile", make_tile},
      {"Transpose", make_transpose},
      {"Unsqueeze", make_unsqueeze},
      {"Upsample", make_upsample},
      {"Where", make_where},
  };
  return ops;
}

}  // namespace

std::unique_ptr<Op> make_op(const Node& node, int64_t opset) {
  const bool standard = node.domain.empty() || node.domain == "ai.onnx";
  const auto found = table().find(node.op);
  if (!standard || found == table().end()) {
    std::string known;
    for (const std::string& op : supported_ops()) known += (known.empty() ? "" : ", ") + op;
    fail(describe(node), ": operator ", node.op, " of domain '",
         node.domain.empty() ? "ai.onnx" : node.domain, "' is not supported; supported are ",
         known);
  }
  OpArguments arguments(node, opset);
  std::unique_ptr<Op> op = found->second(arguments);
  arguments.finish();
  return op;
}

std::vector<std::string> supported_ops() {
  std::vector<std::string> names;
  for (const auto& [name, factory] : table()) names.push_back(name);
  return names;
}

}  // namespace fcp
