// Attributes of the operators of ai.onnx.ml: a byte chooses the operator, then each attribute is a
// byte for its name, one for its kind and its values. Trees above all are read from twenty lists
// that must fit each other. What is accepted runs on a few rows.
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/nn/ops/op.h"

namespace {

constexpr std::array<const char*, 14> kOps = {"TreeEnsembleRegressor",
                                              "TreeEnsembleClassifier",
                                              "TreeEnsemble",
                                              "LinearRegressor",
                                              "LinearClassifier",
                                              "SVMRegressor",
                                              "Scaler",
                                              "Normalizer",
                                              "Imputer",
                                              "OneHotEncoder",
                                              "LabelEncoder",
                                              "Binarizer",
                                              "FeatureVectorizer",
                                              "ArrayFeatureExtractor"};
constexpr std::array<const char*, 48> kNames = {"nodes_treeids",
                                                "nodes_nodeids",
                                                "nodes_featureids",
                                                "nodes_values",
                                                "nodes_modes",
                                                "nodes_truenodeids",
                                                "nodes_falsenodeids",
                                                "nodes_hitrates",
                                                "nodes_missing_value_tracks_true",
                                                "target_ids",
                                                "target_nodeids",
                                                "target_treeids",
                                                "target_weights",
                                                "class_ids",
                                                "class_nodeids",
                                                "class_treeids",
                                                "class_weights",
                                                "classlabels_int64s",
                                                "classlabels_strings",
                                                "n_targets",
                                                "post_transform",
                                                "aggregate_function",
                                                "base_values",
                                                "tree_roots",
                                                "nodes_splits",
                                                "nodes_trueleafs",
                                                "nodes_falseleafs",
                                                "leaf_targetids",
                                                "leaf_weights",
                                                "membership_values",
                                                "coefficients",
                                                "intercepts",
                                                "targets",
                                                "kernel_type",
                                                "kernel_params",
                                                "n_supports",
                                                "support_vectors",
                                                "rho",
                                                "offset",
                                                "scale",
                                                "norm",
                                                "imputed_value_floats",
                                                "replaced_value_float",
                                                "cats_int64s",
                                                "zeros",
                                                "keys_floats",
                                                "values_floats",
                                                "threshold"};
constexpr std::array<const char*, 12> kTexts = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_EQ",
                                                "LEAF",       "SUM",       "AVERAGE",   "LOGISTIC",
                                                "SOFTMAX",    "NONE",      "RBF",       "L2"};

class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool done() const { return at_ >= size_; }
  uint8_t next() { return done() ? 0 : data_[at_++]; }

 private:
  const uint8_t* data_;
  size_t size_, at_ = 0;
};

// Numbers that matter to lists of indices, and some that should be refused.
int64_t small_integer(uint8_t byte) {
  return byte < 240 ? byte % 8 : byte < 248 ? -1 : int64_t{1} << 40;
}
float small_number(uint8_t byte) {
  if (byte == 255) return std::numeric_limits<float>::quiet_NaN();
  if (byte == 254) return std::numeric_limits<float>::infinity();
  return (static_cast<float>(byte) - 100) / 16;
}

fcp::Attribute value_of(Bytes& bytes) {
  const uint8_t kind = bytes.next() % 7;
  const size_t count = bytes.next() % 12;
  if (kind == 0) return small_integer(bytes.next());
  if (kind == 1) return small_number(bytes.next());
  if (kind == 2) return std::string(kTexts[bytes.next() % kTexts.size()]);
  std::vector<int64_t> integers;
  std::vector<float> numbers;
  std::vector<std::string> texts;
  for (size_t i = 0; i < count; ++i) {
    const uint8_t byte = bytes.next();
    integers.push_back(small_integer(byte));
    numbers.push_back(small_number(byte));
    texts.emplace_back(kTexts[byte % kTexts.size()]);
  }
  if (kind == 3) return integers;
  if (kind == 4) return numbers;
  if (kind == 5) return texts;
  return torch::tensor(numbers, torch::kFloat);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  torch::set_num_threads(1);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  fcp::Node node;
  node.op = kOps[bytes.next() % kOps.size()];
  node.domain = "ai.onnx.ml";
  node.inputs = {"x"};
  node.outputs = {"y"};
  if (node.op == "TreeEnsembleClassifier" || node.op == "LinearClassifier")
    node.outputs.push_back("p");
  while (!bytes.done()) {
    const char* name = kNames[bytes.next() % kNames.size()];
    node.attributes[name] = value_of(bytes);
  }
  try {
    const std::unique_ptr<fcp::Op> op = fcp::make_op(node, 5);
    const torch::NoGradGuard no_gradients;
    op->forward({torch::tensor({0.5f, -1.0f, 2.0f, 0.0f, 1.0f, 3.0f}).reshape({3, 2})});
  } catch (const fcp::Error&) {
  } catch (const c10::Error&) {  // Network::run tells these with the node's name
  }
  return 0;
}
