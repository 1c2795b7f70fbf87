// LinearRegressor and LinearClassifier, X Wᵀ + b with a transform. Gradients flow to X; a
// LinearRegressor without a transform has every bound.
// Cost: one product with the weights. Reference: ONNX operator specification of ai.onnx.ml.
// Tested by tests/nn/ops/ml/features_test.cc.
#include <string>
#include <utility>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/nn/kernels/cpu/row_product.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/ml/transforms.h"
#include "fcp/nn/ops/ml/trees.h"
#include "fcp/nn/ops/shared.h"

namespace fcp {
namespace {

// Rows of floating-point numbers, which gradients flow through; floats unless they are doubles.
torch::Tensor linear_rows(const torch::Tensor& x, const Node& node) {
  expect_rank(x, 1, 2, node, "X");
  const torch::Tensor rows = x.dim() == 1 ? x.unsqueeze(0) : x;
  return rows.is_floating_point() ? rows : rows.to(torch::kDouble);
}

class LinearModel {
 public:
  LinearModel(OpArguments& arguments, int64_t outputs) : node_(arguments.node()) {
    const std::vector<float> weights = arguments.numbers("coefficients");
    const std::vector<float> shifts = arguments.numbers("intercepts");
    if (outputs < 1 || weights.empty() || weights.size() % static_cast<size_t>(outputs) != 0) {
      fail(describe(node_), ": has ", weights.size(), " coefficients for ", outputs, " outputs");
    }
    if (!shifts.empty() && shifts.size() != static_cast<size_t>(outputs)) {
      fail(describe(node_), ": has ", shifts.size(), " intercepts for ", outputs, " outputs");
    }
    weight_ = torch::tensor(weights, torch::kFloat).reshape({outputs, -1});
    shift_ = shifts.empty() ? torch::zeros({outputs}) : torch::tensor(shifts, torch::kFloat);
  }

  torch::Tensor scores(const torch::Tensor& given) const {
    const torch::Tensor x = linear_rows(given, node_);
    if (x.size(1) != weight_.size(1)) {
      fail(describe(node_), ": X has shape ", shape_text(given.sizes()), ", expected ",
           weight_.size(1), " columns");
    }
    const auto options = x.options();
    return row_product(x, weight_.to(options).t()) + shift_.to(options);
  }
  const torch::Tensor& weight() const { return weight_; }
  const torch::Tensor& shift() const { return shift_; }

 private:
  Node node_;
  torch::Tensor weight_, shift_;
};

class LinearRegressor : public Op {
 public:
  explicit LinearRegressor(OpArguments& arguments)
      : model_(arguments, arguments.integer("targets", 1)),
        transform_(read_post_transform(arguments, "post_transform")) {
    arguments.expect_inputs(1, 1);
  }
  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor y = fcp::apply(transform_, model_.scores(inputs[0]));
    // A walk over bounds stays in double precision; files only ever see floats.
    return {inputs[0].scalar_type() == torch::kDouble ? y : y.to(torch::kFloat)};
  }

  BoundRule bound_rule(const std::vector<bool>&) const override {
    return transform_ == PostTransform::kNone ? BoundRule::kAffine : BoundRule::kNone;
  }
  std::vector<Range> interval(const std::vector<Range>& inputs, double) const override {
    const auto options = inputs[0].lower.options();
    const torch::Tensor weight = model_.weight().to(options).t();
    const torch::Tensor plus = weight.clamp_min(0), minus = weight.clamp_max(0);
    const torch::Tensor shift = model_.shift().to(options);
    const Range& x = inputs[0];
    return {{row_product(x.lower, plus) + row_product(x.upper, minus) + shift,
             row_product(x.upper, plus) + row_product(x.lower, minus) + shift}};
  }
  double roundings(const Tensors&) const override {
    return static_cast<double>(model_.weight().size(1)) + 3;
  }
  double flops(const Tensors& inputs, const Tensors&) const override {
    return 2.0 * static_cast<double>(inputs[0].size(0)) *
           static_cast<double>(model_.weight().numel());
  }

 private:
  LinearModel model_;
  PostTransform transform_;
};

class LinearClassifier : public Op {
 public:
  explicit LinearClassifier(OpArguments& arguments)
      : labels_(read_labels(arguments)),
        model_(arguments, outputs(arguments, labels_.count)),
        transform_(read_post_transform(arguments, "post_transform")) {
    arguments.expect_inputs(1, 1);
    arguments.ignore("multi_class");  // says how the weights were found
  }

  // One score for two classes is that of the second; the first has its opposite.
  Tensors forward(const Tensors& inputs) const override {
    torch::Tensor scores = model_.scores(inputs[0]);
    if (scores.size(1) == 1 && labels_.count == 2) scores = torch::cat({-scores, scores}, 1);
    const torch::Tensor label = labels_.of(scores.argmax(1));
    return {label, fcp::apply(transform_, scores).to(torch::kFloat)};
  }
  bool differentiable() const override { return false; }

 private:
  // As many scores as intercepts, or as labels where there are none.
  static int64_t outputs(OpArguments& arguments, int64_t labels) {
    const size_t given = arguments.numbers("intercepts").size();
    return given > 0 ? static_cast<int64_t>(given) : labels;
  }

  ClassLabels labels_;
  LinearModel model_;
  PostTransform transform_;
};

}  // namespace

OpPointer make_linear_regressor(OpArguments& arguments) {
  return std::make_unique<LinearRegressor>(arguments);
}

OpPointer make_linear_classifier(OpArguments& arguments) {
  return std::make_unique<LinearClassifier>(arguments);
}

}  // namespace fcp
