#include "fcp/network/batch_free.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <ATen/ThreadLocalState.h>

#include "fcp/base/memory.h"
#include "fcp/base/parallel.h"
#include "fcp/network/single_thread.h"

namespace fcp {
namespace {

const std::set<std::string>& batch_free_ops() {
  static const std::set<std::string> ops = {
      // Functions of one number.
      "Abs", "Ceil", "Celu", "Clip", "Dropout", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid",
      "HardSwish", "Identity", "IsInf", "IsNaN", "LeakyRelu", "Log", "Mish", "Neg", "Not", "PRelu",
      "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Softplus", "Softsign",
      "Sqrt", "Tanh", "ThresholdedRelu",
      // Exact arithmetic and comparisons.
      "Add", "And", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max",
      "Min", "Mul", "Or", "Sub", "Sum", "Where", "Xor",
      // Moves and choices.
      "Cast", "CastLike", "Concat", "Constant", "ConstantOfShape", "DepthToSpace", "Expand",
      "EyeLike", "Flatten", "Gather", "GatherElements", "GatherND", "GlobalMaxPool", "MaxPool",
      "OneHot", "Pad", "Range", "ReduceMax", "ReduceMin", "Reshape", "Shape", "Size", "Slice",
      "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Trilu", "Unsqueeze",
      // Sums of each row in a fixed order.
      "LogSoftmax", "ReduceMean", "ReduceSum", "Softmax"};
  return ops;
}

const std::set<std::string>& batch_free_ml_ops() {
  static const std::set<std::string> ops = {"ArrayFeatureExtractor",
                                            "Binarizer",
                                            "FeatureVectorizer",
                                            "Imputer",
                                            "LabelEncoder",
                                            "OneHotEncoder",
                                            "Scaler",
                                            "TreeEnsemble",
                                            "TreeEnsembleClassifier",
                                            "TreeEnsembleRegressor"};
  return ops;
}

bool is_constant_slot(const Tensors& constants, int slot) {
  return slot < 0 || constants[static_cast<size_t>(slot)].defined();
}

// A product whose right factor is a constant matrix or vector.
bool multiplies_rows(const Step& step, const Tensors& constants) {
  if (step.inputs.size() < 2 || step.inputs[0] < 0 || step.inputs[1] < 0) return false;
  const torch::Tensor& weight = constants[static_cast<size_t>(step.inputs[1])];
  if (!weight.defined() || weight.dim() > 2 || !weight.is_floating_point()) return false;
  if (step.node.op == "MatMul") return true;
  const auto transposed = step.node.attributes.find("transA");
  const bool rows =
      transposed == step.node.attributes.end() || std::get<int64_t>(transposed->second) == 0;
  return rows && (step.inputs.size() < 3 || is_constant_slot(constants, step.inputs[2]));
}

}  // namespace

bool is_batch_free(const Network& network) {
  const std::vector<Step>& steps = network.steps();
  const Tensors& constants = network.constants();
  return std::all_of(steps.begin(), steps.end(), [&](const Step& step) {
    const Node& node = step.node;
    const bool constant = std::all_of(step.inputs.begin(), step.inputs.end(),
                                      [&](int slot) { return is_constant_slot(constants, slot); });
    if (constant) return true;
    if (node.domain == "ai.onnx.ml") return batch_free_ml_ops().contains(node.op);
    if (!node.domain.empty() && node.domain != "ai.onnx") return false;
    if (node.op == "Gemm" || node.op == "MatMul") return multiplies_rows(step, constants);
    return batch_free_ops().contains(node.op);
  });
}

namespace {

Tensors row_of(const Tensors& inputs, size_t row) {
  Tensors one;
  for (const torch::Tensor& input : inputs) {
    one.push_back(input.narrow(0, static_cast<int64_t>(row), 1));
  }
  return one;
}

// Runs the first row, and counts all that it made: as many rows at once as fit the budget.
Tensors run_first(const Network& network, const Tensors& inputs, size_t& rows_at_once) {
  double bytes = 1;
  const auto count = [&](const Step&, const Tensors&, const Tensors& results) {
    for (const torch::Tensor& result : results) {
      if (result.defined()) bytes += static_cast<double>(result.nbytes());
    }
  };
  Tensors results = network.run(row_of(inputs, 0), count);
  rows_at_once = static_cast<size_t>(
      std::max(1.0, static_cast<double>(memory_budget() / memory_sharers()) / bytes));
  return results;
}

}  // namespace

Tensors run_apart(const Network& network, const Tensors& inputs) {
  const bool one_row = inputs.empty() || inputs[0].dim() == 0 || inputs[0].size(0) < 2;
  const bool together =
      one_row || !network.device().is_cpu() || network.fixed_batch() > 1 || is_batch_free(network);
  if (together) return network.run_rows(inputs);
  const auto rows = static_cast<size_t>(inputs[0].size(0));
  std::vector<Tensors> parts(network.outputs().size(), Tensors(rows));
  const auto keep = [&](size_t row, const Tensors& results) {
    for (size_t i = 0; i < results.size(); ++i) parts[i][row] = results[i];
  };
  constexpr size_t kThreadRows = 4;
  size_t threads = static_cast<size_t>(at::get_num_threads()), affordable = 1;
  const SingleThread one_thread;
  keep(0, run_first(network, inputs, affordable));
  threads = std::min(threads, affordable);
  const at::ThreadLocalState caller;  // whether gradients are wanted
  parallel_rows(rows - 1, kThreadRows, threads, [&](size_t first, size_t last) {
    const at::ThreadLocalStateGuard as_caller(caller);
    at::set_num_threads(1);  // of this thread
    for (size_t i = first; i < last; ++i) keep(i + 1, network.run(row_of(inputs, i + 1)));
  });
  Tensors outputs;
  for (const Tensors& part : parts) outputs.push_back(torch::cat(part));
  return outputs;
}

}  // namespace fcp
