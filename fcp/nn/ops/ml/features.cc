// Preparing columns: Scaler, Normalizer, Imputer, Binarizer, ArrayFeatureExtractor,
// FeatureVectorizer, OneHotEncoder and LabelEncoder, for numbers; strings have no tensors here.
// Cost: linear. Reference: ONNX operator specification of ai.onnx.ml, versions 1 to 4.
// Tested by tests/nn/ops/ml/features_test.cc.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/index.h"
#include "fcp/nn/ops/shared.h"

namespace fcp {
namespace {

// What the file sees as floats; doubles stay so where a walk over bounds asks.
torch::Tensor as_floats(const torch::Tensor& x) {
  return x.is_floating_point() ? x : x.to(torch::kFloat);
}

// One number, or one per column.
void expect_columns(size_t count, const torch::Tensor& x, const Node& node, const char* what) {
  if (count != 1 && (x.dim() == 0 || count != static_cast<size_t>(x.size(-1)))) {
    fail(describe(node), ": ", what, " has ", count, " numbers for X of shape ",
         shape_text(x.sizes()));
  }
}

// (x − offset) · scale.
class ScalerOp : public Op {
 public:
  explicit ScalerOp(OpArguments& arguments)
      : node_(arguments.node()),
        offset_(read(arguments, "offset", 0)),
        scale_(read(arguments, "scale", 1)) {
    arguments.expect_inputs(1, 1);
  }
  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor x = as_floats(inputs[0]);
    expect_columns(static_cast<size_t>(offset_.numel()), x, node_, "offset");
    expect_columns(static_cast<size_t>(scale_.numel()), x, node_, "scale");
    return {(x - offset_.to(x.options())) * scale_.to(x.options())};
  }
  BoundRule bound_rule(const std::vector<bool>&) const override { return BoundRule::kAffine; }
  std::vector<Range> interval(const std::vector<Range>& inputs, double) const override {
    const torch::Tensor rises = scale_.to(inputs[0].lower.device()) >= 0;
    return {{forward({torch::where(rises, inputs[0].lower, inputs[0].upper)})[0],
             forward({torch::where(rises, inputs[0].upper, inputs[0].lower)})[0]}};
  }
  double roundings(const Tensors&) const override { return 4; }
  torch::Tensor magnitude(const Tensors& inputs) const override {
    const auto options = inputs[0].options();
    return (inputs[0] + offset_.abs().to(options)) * scale_.abs().to(options);
  }

 private:
  static torch::Tensor read(OpArguments& arguments, const char* name, float fallback) {
    const std::vector<float> values = arguments.numbers(name);
    return torch::tensor(values.empty() ? std::vector<float>{fallback} : values, torch::kFloat);
  }

  Node node_;
  torch::Tensor offset_, scale_;
};

// x divided by its row's largest number, sum of magnitudes or length; by nothing where that is 0.
class NormalizerOp : public Op {
 public:
  explicit NormalizerOp(OpArguments& arguments)
      : node_(arguments.node()), norm_(arguments.text("norm", "MAX")) {
    arguments.expect_inputs(1, 1);
    if (norm_ != "MAX" && norm_ != "L1" && norm_ != "L2") {
      fail(describe(node_), ": attribute 'norm' is '", norm_, "', expected MAX, L1 or L2");
    }
  }
  Tensors forward(const Tensors& inputs) const override {
    expect_rank(inputs[0], 1, 2, node_, "X");
    const torch::Tensor x = as_floats(inputs[0]);
    torch::Tensor size;
    if (norm_ == "MAX") size = x.amax(-1, /*keepdim=*/true);
    if (norm_ == "L1") size = x.abs().sum(-1, /*keepdim=*/true);
    if (norm_ == "L2") size = x.square().sum(-1, /*keepdim=*/true).sqrt();
    return {x / torch::where(size == 0, torch::ones_like(size), size)};
  }

 private:
  Node node_;
  std::string norm_;
};

class ImputerOp : public Op {
 public:
  explicit ImputerOp(OpArguments& arguments) : node_(arguments.node()) {
    arguments.expect_inputs(1, 1);
    const std::vector<float> floats = arguments.numbers("imputed_value_floats");
    const std::vector<int64_t> integers = arguments.integers("imputed_value_int64s");
    replaced_ = arguments.number("replaced_value_float", 0);
    replaced_integer_ = arguments.integer("replaced_value_int64", 0);
    if (floats.empty() == integers.empty()) {
      fail(describe(node_), ": needs imputed values, as floats or as integers");
    }
    values_ = floats.empty() ? torch::tensor(integers, torch::kLong)
                             : torch::tensor(floats, torch::kFloat);
  }
  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor& x = inputs[0];
    expect_columns(static_cast<size_t>(values_.numel()), x, node_, "the imputed value");
    const bool missing = x.is_floating_point() && std::isnan(replaced_);
    const torch::Tensor hit = missing                 ? x.isnan()
                              : x.is_floating_point() ? x == replaced_
                                                      : x == replaced_integer_;
    return {torch::where(hit, values_.to(x.options()), x)};
  }
  MissingRule missing_rule() const override {
    const bool replaces = std::isnan(replaced_) && !values_.isnan().any().item<bool>();
    return replaces ? MissingRule::kReads : MissingRule::kSpreads;
  }

 private:
  Node node_;
  double replaced_ = 0;
  int64_t replaced_integer_ = 0;
  torch::Tensor values_;
};

class BinarizerOp : public Op {
 public:
  explicit BinarizerOp(OpArguments& arguments) : threshold_(arguments.number("threshold", 0)) {
    arguments.expect_inputs(1, 1);
  }
  Tensors forward(const Tensors& inputs) const override {
    return {(inputs[0] > threshold_).to(inputs[0].scalar_type())};
  }
  bool differentiable() const override { return false; }
  BoundRule bound_rule(const std::vector<bool>&) const override { return BoundRule::kInterval; }

 private:
  double threshold_;
};

// Columns by index; a vector counts as one row.
class ArrayFeatureOp : public Op {
 public:
  explicit ArrayFeatureOp(OpArguments& arguments) : node_(arguments.node()) {
    arguments.expect_inputs(2, 2);
  }
  Tensors forward(const Tensors& inputs) const override {
    expect_rank(inputs[0], 1, kMaxIndexRank, node_, "X");
    const torch::Tensor x = inputs[0].dim() == 1 ? inputs[0].unsqueeze(0) : inputs[0];
    const torch::Tensor index =
        checked_indices(inputs[1].reshape({-1}), x.size(-1), node_, x.device());
    return {x.index_select(-1, index)};
  }
  BoundRule bound_rule(const std::vector<bool>& constant) const override {
    return affine_in_first(constant);
  }
  MissingRule missing_rule() const override { return MissingRule::kMoves; }

 private:
  Node node_;
};

class FeatureVectorizerOp : public Op {
 public:
  explicit FeatureVectorizerOp(OpArguments& arguments) : node_(arguments.node()) {
    const size_t count = std::max<size_t>(1, node_.inputs.size());
    arguments.expect_inputs(count, count);
    arguments.ignore("inputdimensions");  // the inputs say it
  }
  Tensors forward(const Tensors& inputs) const override {
    Tensors columns;
    for (const torch::Tensor& input : inputs) {
      expect_rank(input, 1, 2, node_, "an input");
      columns.push_back(as_floats(input.dim() == 1 ? input.unsqueeze(0) : input));
    }
    return {torch::cat(columns, 1)};
  }
  BoundRule bound_rule(const std::vector<bool>&) const override { return BoundRule::kAffine; }
  MissingRule missing_rule() const override { return MissingRule::kMoves; }

 private:
  Node node_;
};

class OneHotEncoderOp : public Op {
 public:
  explicit OneHotEncoderOp(OpArguments& arguments)
      : node_(arguments.node()), zeros_(arguments.integer("zeros", 1) != 0) {
    arguments.expect_inputs(1, 1);
    const std::vector<int64_t> categories = arguments.integers("cats_int64s");
    if (categories.empty()) {
      fail(describe(node_),
           ": needs categories that are integers; encode strings before the network");
    }
    categories_ = torch::tensor(categories, torch::kLong);
  }
  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor hot =
        inputs[0].to(torch::kLong).unsqueeze(-1) == categories_.to(inputs[0].device());
    if (!zeros_ && !hot.any(-1).all().item<bool>()) {
      fail(describe(node_), ": X holds a category that the network does not know");
    }
    return {hot.to(torch::kFloat)};
  }
  bool differentiable() const override { return false; }

 private:
  Node node_;
  bool zeros_;
  torch::Tensor categories_;
};

// Keys to values, numbers to numbers; NaN is a key like any other, and the last of equal keys wins.
class LabelEncoderOp : public Op {
 public:
  explicit LabelEncoderOp(OpArguments& arguments) : node_(arguments.node()) {
    arguments.expect_inputs(1, 1);
    arguments.ignore("default_string");
    for (const char* name : {"keys_strings", "values_strings", "classes_strings"}) {
      if (arguments.has(name)) {
        fail(describe(node_), ": maps strings, which have no tensors here; encode them before the ",
             "network");
      }
    }
    const torch::Tensor keys = read(arguments, "keys"), values = read(arguments, "values");
    if (!keys.defined() || !values.defined() || keys.numel() != values.numel()) {
      fail(describe(node_), ": needs as many keys as values");
    }
    values_ = values.reshape({-1});
    fallback_ = read_default(arguments, values_.scalar_type());
    sort_keys(keys.reshape({-1}).to(torch::kDouble));
  }
  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor x = inputs[0].to(torch::kCPU, torch::kDouble).contiguous();
    const torch::Tensor place = torch::searchsorted(keys_, x).clamp_max(keys_.numel() - 1);
    const torch::Tensor found = keys_.index_select(0, place.reshape({-1})).reshape(x.sizes());
    const torch::Tensor row = order_.index_select(0, place.reshape({-1}));
    torch::Tensor y = values_.index_select(0, row).reshape(x.sizes());
    y = torch::where(found == x, y, fallback_);
    if (nan_.defined()) y = torch::where(x.isnan(), nan_, y);
    return {y};
  }
  bool differentiable() const override { return false; }
  MissingRule missing_rule() const override {
    const bool none = values_.isnan().any().item<bool>() || fallback_.isnan().item<bool>();
    return none ? MissingRule::kSpreads : MissingRule::kReads;
  }

 private:
  static torch::Tensor read(OpArguments& arguments, const std::string& kind) {
    const torch::Tensor tensor = arguments.tensor(kind + "_tensor");
    const std::vector<float> floats = arguments.numbers(kind + "_floats");
    const std::vector<int64_t> integers = arguments.integers(kind + "_int64s");
    if (tensor.defined()) return tensor;
    if (!floats.empty()) return torch::tensor(floats, torch::kFloat);
    return integers.empty() ? torch::Tensor() : torch::tensor(integers, torch::kLong);
  }

  static torch::Tensor read_default(OpArguments& arguments, torch::ScalarType type) {
    const torch::Tensor tensor = arguments.tensor("default_tensor");
    const double number = arguments.number("default_float", -0.0);
    const int64_t integer = arguments.integer("default_int64", -1);
    if (tensor.defined()) return tensor.reshape({-1})[0].to(type);
    return torch::isFloatingType(type) ? torch::tensor(number, type) : torch::tensor(integer, type);
  }

  void sort_keys(const torch::Tensor& keys) {
    std::vector<double> sorted;
    std::vector<int64_t> order;
    const double* from = keys.data_ptr<double>();
    std::vector<int64_t> places;
    for (int64_t i = 0; i < keys.numel(); ++i) {
      if (std::isnan(from[i])) nan_ = values_[i];
      if (!std::isnan(from[i])) places.push_back(i);
    }
    std::stable_sort(places.begin(), places.end(),
                     [&](int64_t a, int64_t b) { return from[a] < from[b]; });
    for (const int64_t place : places) {
      if (!sorted.empty() && sorted.back() == from[place]) {
        order.back() = place;
      } else {
        sorted.push_back(from[place]);
        order.push_back(place);
      }
    }
    if (sorted.empty()) {  // NaN alone: a key that nothing equals
      sorted.push_back(std::numeric_limits<double>::quiet_NaN());
      order.push_back(0);
    }
    keys_ = torch::tensor(sorted, torch::kDouble);
    order_ = torch::tensor(order, torch::kLong);
  }

  Node node_;
  torch::Tensor keys_, order_, values_, fallback_, nan_;
};

template <typename Type>
OpPointer made(OpArguments& arguments) {
  return std::make_unique<Type>(arguments);
}

}  // namespace

OpPointer make_scaler(OpArguments& arguments) { return made<ScalerOp>(arguments); }
OpPointer make_normalizer(OpArguments& arguments) { return made<NormalizerOp>(arguments); }
OpPointer make_imputer(OpArguments& arguments) { return made<ImputerOp>(arguments); }
OpPointer make_binarizer(OpArguments& arguments) { return made<BinarizerOp>(arguments); }
OpPointer make_array_feature_extractor(OpArguments& arguments) {
  return made<ArrayFeatureOp>(arguments);
}
OpPointer make_feature_vectorizer(OpArguments& arguments) {
  return made<FeatureVectorizerOp>(arguments);
}
OpPointer make_one_hot_encoder(OpArguments& arguments) { return made<OneHotEncoderOp>(arguments); }
OpPointer make_label_encoder(OpArguments& arguments) { return made<LabelEncoderOp>(arguments); }

}  // namespace fcp
