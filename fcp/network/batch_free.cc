#include "fcp/network/batch_free.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <ATen/Parallel.h>

#include "fcp/base/error.h"

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
      "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Trilu", "Unsqueeze"};
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

// Rows of the inputs one by one, or several at a time, and their results.
class RowRunner {
 public:
  RowRunner(const Network& network, const Tensors& inputs)
      : network_(network), inputs_(inputs), parts_(network.outputs().size()) {}

  Tensors run(int64_t first, int64_t count) const {
    Tensors rows;
    for (const torch::Tensor& input : inputs_) rows.push_back(input.narrow(0, first, count));
    return network_.run(rows);
  }
  void keep(int64_t first, int64_t count) {
    const Tensors results = run(first, count);
    for (size_t i = 0; i < results.size(); ++i) parts_[i].push_back(results[i]);
  }

  // Whether the first rows together give the bits that they have given alone.
  bool same_together() const {
    const auto kept = static_cast<int64_t>(parts_.at(0).size());
    Tensors together;
    try {
      together = run(0, kept);
    } catch (const Error&) {  // it takes single rows alone, or there is too little memory for more
      return false;
    }
    for (size_t i = 0; i < together.size(); ++i) {
      if (!torch::equal(together[i], torch::cat(parts_[i]))) return false;
    }
    return true;
  }

  Tensors outputs() const {
    Tensors all;
    for (const Tensors& part : parts_) all.push_back(torch::cat(part));
    return all;
  }

 private:
  const Network& network_;
  const Tensors& inputs_;
  std::vector<Tensors> parts_;
};

// What decides which instructions libtorch runs: the shapes and types of a row, and the threads.
std::string kind_of_rows(const Tensors& inputs) {
  std::string text = std::to_string(at::get_num_threads());
  for (const torch::Tensor& input : inputs) {
    text += c10::toString(input.scalar_type());
    for (const int64_t size : input.sizes().slice(1)) {
      text += ' ';
      text += std::to_string(size);
    }
  }
  return text;
}

}  // namespace

Tensors run_apart(const Network& network, const Tensors& inputs) {
  const bool one_row = inputs.empty() || inputs[0].dim() == 0 || inputs[0].size(0) < 2;
  const bool together =
      one_row || !network.device().is_cpu() || network.fixed_batch() > 1 || is_batch_free(network);
  if (together) return network.run_rows(inputs);
  const int64_t rows = inputs[0].size(0);
  RowRunner runner(network, inputs);
  const std::string kind = kind_of_rows(inputs);
  std::optional<bool> same = network.row_memo().find(kind);
  int64_t done = 0;
  if (!same && rows > kRowsTogether && network.fixed_batch() == kDynamic) {
    for (; done < kRowsTogether; ++done) runner.keep(done, 1);
    same = runner.same_together();
    network.row_memo().keep(kind, *same);
  }
  for (; same.value_or(false) && done + kRowsTogether <= rows; done += kRowsTogether) {
    runner.keep(done, kRowsTogether);
  }
  for (; done < rows; ++done) runner.keep(done, 1);
  return runner.outputs();
}

}  // namespace fcp
