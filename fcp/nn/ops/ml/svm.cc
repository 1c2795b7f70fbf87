// SVMRegressor, Σ c_i k(x, v_i) + ρ over the support vectors v_i, and SVMClassifier, which decides
// between every two classes a < b by such a sum,
//
//   s_ab = Σ_{v of a} c[b − 1, v] k(x, v) + Σ_{v of b} c[a, v] k(x, v) + ρ_ab,   s_ab > 0: a wins,
//
// and takes the class with the most wins. Without prob_a and prob_b the scores are the s_ab (−s, s
// of two classes). With them r_ab = 1 / (1 + exp(A_ab s_ab + B_ab)) is the chance of a among a and
// b, and the scores are the class probabilities p that agree best with all r: those that minimise
// Σ_{a ≠ b} (r_ba p_a − r_ab p_b)². Without support vectors the scores are X Wᵀ + ρ.
// Gradients flow through the regressor to X; there are no bounds.
// Cost: N · supports · features. Reference: ONNX operator specification of ai.onnx.ml; T.-F. Wu,
// C.-J. Lin and R. C. Weng, Probability estimates for multi-class classification by pairwise
// coupling, JMLR 5 (2004), algorithm 2. Tested by tests/nn/ops/ml/features_test.cc.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/ml/transforms.h"
#include "fcp/nn/ops/ml/trees.h"
#include "fcp/nn/ops/shared.h"

namespace fcp {
namespace {

// The kernels of rows with the support vectors.
class SvmKernel {
 public:
  SvmKernel(OpArguments& arguments, int64_t supports)
      : node_(arguments.node()), kernel_(arguments.text("kernel_type", "LINEAR")) {
    if (kernel_ != "LINEAR" && kernel_ != "POLY" && kernel_ != "RBF" && kernel_ != "SIGMOID") {
      fail(describe(node_), ": kernel_type is '", kernel_,
           "', expected LINEAR, POLY, RBF or SIGMOID");
    }
    const std::vector<float> parameters = arguments.numbers("kernel_params");
    for (size_t i = 0; i < parameters.size() && i < 3; ++i) parameters_[i] = parameters[i];
    const std::vector<float> vectors = arguments.numbers("support_vectors");
    if (supports == 0) return;
    if (supports < 0 || vectors.empty() || vectors.size() % static_cast<size_t>(supports) != 0) {
      fail(describe(node_), ": has ", supports, " support vectors of ", vectors.size(),
           " numbers in all");
    }
    vectors_ = torch::tensor(vectors, torch::kFloat).reshape({supports, -1});
  }

  bool has_vectors() const { return vectors_.defined(); }

  // Rows of doubles, which gradients flow through.
  torch::Tensor rows(const torch::Tensor& given, int64_t linear_features) const {
    expect_rank(given, 1, 2, node_, "X");
    const torch::Tensor x = (given.dim() == 1 ? given.unsqueeze(0) : given).to(torch::kDouble);
    const int64_t features = has_vectors() ? vectors_.size(1) : linear_features;
    if (x.size(1) != features) {
      fail(describe(node_), ": X has shape ", shape_text(given.sizes()), ", expected ", features,
           " columns");
    }
    return x;
  }

  // [N, supports]; the parameters are γ, the constant and the degree.
  torch::Tensor operator()(const torch::Tensor& x) const {
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

 private:
  Node node_;
  std::string kernel_;
  double parameters_[3] = {0, 0, 0};
  torch::Tensor vectors_;
};

class SvmRegressor : public Op {
 public:
  explicit SvmRegressor(OpArguments& arguments)
      : kernel_(arguments, arguments.integer("n_supports", 0)),
        one_class_(arguments.integer("one_class", 0) != 0),
        transform_(read_post_transform(arguments, "post_transform")) {
    arguments.expect_inputs(1, 1);
    const std::vector<float> rho = arguments.numbers("rho");
    shift_ = rho.empty() ? 0 : rho[0];
    const std::vector<float> weights = arguments.numbers("coefficients");
    weight_ = torch::tensor(weights, torch::kFloat);
    const int64_t supports = arguments.integer("n_supports", 0);
    if (supports != 0 && weights.size() != static_cast<size_t>(supports)) {
      fail(describe(arguments.node()), ": has ", supports, " support vectors and ", weights.size(),
           " coefficients");
    }
  }

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor x = kernel_.rows(inputs[0], weight_.numel());
    const torch::Tensor near = kernel_.has_vectors() ? kernel_(x) : x;
    torch::Tensor y = torch::matmul(near, weight_.to(near.options())).unsqueeze(1) + shift_;
    if (one_class_) y = torch::where(y > 0, torch::ones_like(y), -torch::ones_like(y));
    return {fcp::apply(transform_, y).to(torch::kFloat)};
  }
  bool differentiable() const override { return !one_class_; }

 private:
  SvmKernel kernel_;
  bool one_class_;
  PostTransform transform_;
  double shift_ = 0;
  torch::Tensor weight_;
};

// Class probabilities [N, C] out of r [N, C, C], the chance of a among a and b; rows stop one by
// one. Their stopping rule is part of the answer: it leaves errors of about 0.005 / C.
torch::Tensor couple(const torch::Tensor& r) {
  const int64_t classes = r.size(1);
  const torch::Tensor back = r.transpose(1, 2);  // [n, a, b]: r_ba
  const torch::Tensor eye = torch::eye(classes, r.options());
  const torch::Tensor q =
      torch::diag_embed((back.square() * (1 - eye)).sum(2)) - back * r * (1 - eye);
  torch::Tensor p =
      torch::full({r.size(0), classes}, 1.0 / static_cast<double>(classes), r.options());
  for (int round = 0; round < 100; ++round) {
    torch::Tensor qp = torch::matmul(q, p.unsqueeze(2)).squeeze(2);
    torch::Tensor pqp = (p * qp).sum(1);
    const torch::Tensor open =
        (qp - pqp.unsqueeze(1)).abs().amax(1) >= 0.005 / static_cast<double>(classes);
    if (!open.any().item<bool>()) break;
    torch::Tensor next = p.clone();
    for (int64_t a = 0; a < classes; ++a) {
      const torch::Tensor own = q.select(1, a).select(1, a);
      const torch::Tensor step = (pqp - qp.select(1, a)) / own;
      const torch::Tensor whole = 1 + step;
      next.select(1, a).add_(step);
      pqp = (pqp + step * (step * own + 2 * qp.select(1, a))) / whole / whole;
      qp = (qp + step.unsqueeze(1) * q.select(1, a)) / whole.unsqueeze(1);
      next = next / whole.unsqueeze(1);
    }
    p = torch::where(open.unsqueeze(1), next, p);
  }
  return p;
}

class SvmClassifier : public Op {
 public:
  explicit SvmClassifier(OpArguments& arguments)
      : node_(arguments.node()),
        labels_(read_labels(arguments)),
        per_class_(arguments.integers("vectors_per_class")),
        kernel_(arguments, sum(per_class_)),
        transform_(read_post_transform(arguments, "post_transform")) {
    arguments.expect_inputs(1, 1);
    const int64_t supports = sum(per_class_), pairs = labels_.count * (labels_.count - 1) / 2;
    const std::vector<float> weights = arguments.numbers("coefficients");
    const int64_t rows = supports > 0 ? labels_.count - 1 : labels_.count;
    const bool fits = supports > 0
                          ? static_cast<int64_t>(weights.size()) == rows * supports &&
                                static_cast<int64_t>(per_class_.size()) == labels_.count
                          : !weights.empty() && static_cast<int64_t>(weights.size()) % rows == 0;
    if (labels_.count < 2 || !fits) {
      fail(describe(node_), ": has ", weights.size(), " coefficients for ", labels_.count,
           " classes and ", supports, " support vectors");
    }
    all_positive_ =
        std::all_of(weights.begin(), weights.end(), [](float value) { return value >= 0; });
    weight_ = torch::tensor(weights, torch::kFloat).reshape({rows, -1}).to(torch::kDouble);
    rho_ = read_pairs(arguments, "rho", supports > 0 ? pairs : 1, false);
    slope_ = read_pairs(arguments, "prob_a", pairs, true);
    offset_ = read_pairs(arguments, "prob_b", pairs, true);
    if (slope_.defined() != offset_.defined()) {
      fail(describe(node_), ": has one of prob_a and prob_b, expected both or none");
    }
    if (supports > 0 && !slope_.defined() && labels_.count == 2 &&
        transform_ != PostTransform::kNone) {
      fail(describe(node_), ": transforms the score of two classes, expected post_transform NONE");
    }
  }

  Tensors forward(const Tensors& inputs) const override {
    const torch::Tensor x = kernel_.rows(inputs[0], weight_.size(1)).to(torch::kCPU);
    return kernel_.has_vectors() ? by_pairs(kernel_(x)) : linear(x);
  }
  bool differentiable() const override { return false; }

 private:
  static int64_t sum(const std::vector<int64_t>& counts) {
    int64_t total = 0;
    for (const int64_t count : counts) total += std::max<int64_t>(0, count);
    return total;
  }

  torch::Tensor read_pairs(OpArguments& arguments, const std::string& name, int64_t count,
                           bool optional) const {
    const std::vector<float> found = arguments.numbers(name);
    if (found.empty() && optional) return {};
    if (static_cast<int64_t>(found.size()) < count) {
      fail(describe(node_), ": attribute '", name, "' has ", found.size(), " elements, expected ",
           count);
    }
    return torch::tensor(found, torch::kDouble);
  }

  // Of two classes the second wins with a score above 0 (0.5 where no weight is negative), as ONNX
  // Runtime has it.
  Tensors linear(const torch::Tensor& x) const {
    const torch::Tensor scores = torch::mm(x, weight_.t()) + rho_[0];
    torch::Tensor best = scores.argmax(1);
    if (labels_.count == 2 && !slope_.defined()) {
      const torch::Tensor most = scores.amax(1);
      best = torch::where(all_positive_ ? most >= 0.5 : most > 0, torch::ones_like(best), best);
    }
    return {labels_.of(best), fcp::apply(transform_, scores).to(torch::kFloat)};
  }

  Tensors by_pairs(const torch::Tensor& kernels) const {
    const int64_t classes = labels_.count, rows = kernels.size(0);
    std::vector<int64_t> first(1, 0);
    for (const int64_t count : per_class_) first.push_back(first.back() + count);
    torch::Tensor wins = torch::zeros({rows, classes}, torch::kDouble);
    torch::Tensor chances = torch::zeros({rows, classes, classes}, torch::kDouble);
    Tensors scores;
    for (int64_t a = 0; a < classes; ++a) {
      for (int64_t b = a + 1; b < classes; ++b) {
        const auto pair = static_cast<int64_t>(scores.size());
        const auto part = [&](int64_t of, int64_t row) {
          const int64_t start = first[static_cast<size_t>(of)];
          const int64_t count = per_class_[static_cast<size_t>(of)];
          return torch::mv(kernels.narrow(1, start, count), weight_[row].narrow(0, start, count));
        };
        scores.push_back(part(a, b - 1) + part(b, a) + rho_[pair]);
        const torch::Tensor won = (scores.back() > 0).to(torch::kDouble);
        wins.select(1, a).add_(won);
        wins.select(1, b).add_(1 - won);
        if (!slope_.defined()) continue;
        const torch::Tensor chance =
            torch::sigmoid(-(scores.back() * slope_[pair] + offset_[pair])).clamp(1e-7, 1 - 1e-7);
        chances.select(1, a).select(1, b).copy_(chance);
        chances.select(1, b).select(1, a).copy_(1 - chance);
      }
    }
    torch::Tensor shown = slope_.defined() ? couple(chances) : torch::stack(scores, 1);
    if (!slope_.defined() && classes == 2) shown = torch::cat({-shown, shown}, 1);
    return {labels_.of(wins.argmax(1)), fcp::apply(transform_, shown).to(torch::kFloat)};
  }

  Node node_;
  ClassLabels labels_;
  std::vector<int64_t> per_class_;
  SvmKernel kernel_;
  PostTransform transform_;
  bool all_positive_ = false;
  torch::Tensor weight_;  // [C − 1, supports], or [C, features]
  torch::Tensor rho_, slope_, offset_;
};

}  // namespace

OpPointer make_svm_regressor(OpArguments& arguments) {
  return std::make_unique<SvmRegressor>(arguments);
}

OpPointer make_svm_classifier(OpArguments& arguments) {
  return std::make_unique<SvmClassifier>(arguments);
}

}  // namespace fcp
