// LinearRegressor and LinearClassifier, X Wᵀ + b with a transform, and SVMRegressor,
// Σ c_i k(x, v_i) + ρ over the support vectors v_i. Gradients flow to X; a LinearRegressor without
// a transform has every bound.
// Cost: one product with the weights. Reference: ONNX operator specification of ai.onnx.ml.
// Tested by tests/network/ml_features_test.cc.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/network/ops/checks.h"
#include "fcp/network/ops/factories.h"
#include "fcp/network/ops/ml/read_forest.h"
#include "fcp/network/ops/ml/transforms.h"
#include "fcp/network/ops/shared.h"
#include "fcp/network/row_product.h"

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

class SvmRegressor : public Op {
 public:
  explicit SvmRegressor(OpArguments& arguments)
      : node_(arguments.node()),
        kernel_(arguments.text("kernel_type", "LINEAR")),
        one_class_(arguments.integer("one_class", 0) != 0),
        transform_(read_post_transform(arguments, "post_transform")) {
    arguments.expect_inputs(1, 1);
    const int64_t supports = arguments.integer("n_supports", 0);
    const std::vector<float> parameters = arguments.numbers("kernel_params");
    for (size_t i = 0; i < parameters.size() && i < 3; ++i) parameters_[i] = parameters[i];
    const std::vector<float> rho = arguments.numbers("rho");
    shift_ = rho.empty() ? 0 : rho[0];
    const std::vector<float> weights = arguments.numbers("coefficients");
    const std::vector<float> vectors = arguments.numbers("support_vectors");
    weight_ = torch::tensor(weights, torch::kFloat);
    if (kernel_ != "LINEAR" && kernel_ != "POLY" && kernel_ != "RBF" && kernel_ != "SIGMOID") {
      fail(describe(node_), ": kernel_type is '", kernel_,
           "', expected LINEAR, POLY, RBF or SIGMOID");
    }
    if (supports == 0) return;  // linear: the coefficients are those of X
    if (weights.size() != static_cast<size_t>(supports) || vectors.empty() ||
        vectors.size() % weights.size() != 0) {
      fail(describe(node_), ": has ", supports, " support vectors of ", vectors.size(),
           " numbers in all and ", weights.size(), " coefficients");
    }
    vectors_ = torch::tensor(vectors, torch::kFloat).reshape({supports, -1});
  }

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor x = linear_rows(inputs[0], node_).to(torch::kDouble);
    const int64_t features = vectors_.defined() ? vectors_.size(1) : weight_.numel();
    if (x.size(1) != features) {
      fail(describe(node_), ": X has shape ", shape_text(inputs[0].sizes()), ", expected ",
           features, " columns");
    }
    const torch::Tensor near = vectors_.defined() ? kernel(x) : x;
    torch::Tensor y = torch::matmul(near, weight_.to(near.options())).unsqueeze(1) + shift_;
    if (one_class_) y = torch::where(y > 0, torch::ones_like(y), -torch::ones_like(y));
    return {fcp::apply(transform_, y).to(torch::kFloat)};
  }
  bool differentiable() const override { return !one_class_; }

 private:
  // [N, supports]; the parameters are γ, the constant and the degree.
  torch::Tensor kernel(const torch::Tensor& x) const {
    const torch::Tensor v = vectors_.to(x.options());
    if (kernel_ == "RBF") {
      const torch::Tensor distance = (x.unsqueeze(1) - v.unsqueeze(0)).square().sum(-1);
      return torch::exp(distance * -parameters_[0]);
    }
    const torch::Tensor product = torch::mm(x, v.t());
    if (kernel_ == "LINEAR") return product;
    const torch::Tensor shifted = product * parameters_[0] + parameters_[1];
    return kernel_ == "POLY" ? torch::pow(shifted, parameters_[2]) : torch::tanh(shifted);
  }

  Node node_;
  std::string kernel_;
  bool one_class_;
  PostTransform transform_;
  double parameters_[3] = {0, 0, 0};
  double shift_ = 0;
  torch::Tensor weight_, vectors_;
};

}  // namespace

OpPointer make_linear_regressor(OpArguments& arguments) {
  return std::make_unique<LinearRegressor>(arguments);
}

OpPointer make_linear_classifier(OpArguments& arguments) {
  return std::make_unique<LinearClassifier>(arguments);
}

OpPointer make_svm_regressor(OpArguments& arguments) {
  return std::make_unique<SvmRegressor>(arguments);
}

}  // namespace fcp
