// TreeEnsembleRegressor, TreeEnsembleClassifier and TreeEnsemble of version 5: votes of a forest,
// aggregated per target, plus base values, transformed. A classifier of two classes whose leaves
// vote for one of them alone gets the other's score as ONNX Runtime does: 1 − s where all votes are
// positive (shares of a class), else −s, which a logistic transform turns into probabilities.
//
// Runs on the CPU. Gradient: none, trees jump. Bounds: none.
// Reference: ONNX operator specification of ai.onnx.ml, versions 1 to 5.
// Tested by tests/nn/ops/ml/trees_test.cc.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/nn/ops/checks.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/ml/forest.h"
#include "fcp/nn/ops/ml/read_forest.h"
#include "fcp/nn/ops/ml/transforms.h"

namespace fcp {
namespace {

class TreeOp : public Op {
 public:
  TreeOp(OpArguments& arguments, const PlainForest& plain, int64_t targets, Aggregate aggregate)
      : node_(arguments.node()), forest_(plain, targets, aggregate, arguments.node()) {
    arguments.expect_inputs(1, 1);
  }
  bool differentiable() const override { return false; }
  MissingRule missing_rule() const override { return MissingRule::kReads; }

 protected:
  torch::Tensor votes(const Tensors& inputs) const {
    return forest_.run(rows_of(inputs[0], forest_.features(), node_));
  }

  Node node_;
  Forest forest_;
};

int64_t read_targets(OpArguments& arguments) {
  const int64_t targets = arguments.integer("n_targets", 1);
  if (targets < 1 || targets > 1 << 20) {
    fail(describe(arguments.node()), ": n_targets is ", targets, ", expected at least 1");
  }
  return targets;
}

class TreeRegressor : public TreeOp {
 public:
  TreeRegressor(OpArguments& arguments, int64_t targets)
      : TreeOp(arguments, read_forest(arguments, "target"), targets, read_aggregate(arguments)),
        base_(base_values(arguments, targets)),
        transform_(read_post_transform(arguments, "post_transform")) {}

  Tensors forward(const Tensors& inputs) const override {
    torch::Tensor scores = votes(inputs);
    if (base_.defined()) scores = scores + base_;
    return {fcp::apply(transform_, scores).to(inputs[0].device(), torch::kFloat)};
  }

 private:
  static torch::Tensor base_values(OpArguments& arguments, int64_t targets) {
    const std::vector<double> values = numbers_or_tensor(arguments, "base_values");
    if (values.empty()) return {};
    if (values.size() != 1 && values.size() != static_cast<size_t>(targets)) {
      fail(describe(arguments.node()), ": has ", values.size(), " base values for ", targets,
           " targets");
    }
    return torch::tensor(values, torch::kDouble);
  }

  torch::Tensor base_;
  PostTransform transform_;
};

class TreeClassifier : public TreeOp {
 public:
  explicit TreeClassifier(OpArguments& arguments)
      : TreeClassifier(arguments, read_forest(arguments, "class"), read_labels(arguments)) {}

  Tensors forward(const Tensors& inputs) const override {
    torch::Tensor scores = votes(inputs);
    if (one_sided_) {
      torch::Tensor s = scores.narrow(1, voted_, 1);
      if (!base_.empty()) s = s + base_.back();
      const torch::Tensor other = positive_ ? 1 - s : -s;
      scores = torch::cat({other, s}, 1);
      const torch::Tensor second = positive_ ? torch::round(s * 1e6) > 5e5 : s > 0;
      const torch::Tensor label = second.to(torch::kLong).squeeze(1);
      if (!positive_) scores = fcp::apply(transform_, scores);
      return {labels_.of(label), scores.to(torch::kFloat)};
    }
    for (size_t i = 0; i < base_.size(); ++i) scores.select(1, static_cast<int64_t>(i)) += base_[i];
    // Votes that differ by the rounding of their weights alone are equal: the first class wins.
    const torch::Tensor label = torch::round(scores * 1e6).argmax(1);
    return {labels_.of(label), fcp::apply(transform_, scores).to(torch::kFloat)};
  }

 private:
  TreeClassifier(OpArguments& arguments, const PlainForest& plain, ClassLabels labels)
      : TreeOp(arguments, plain, std::max<int64_t>(labels.count, 2), Aggregate::kSum),
        labels_(std::move(labels)),
        base_(numbers_or_tensor(arguments, "base_values")),
        transform_(read_post_transform(arguments, "post_transform")) {
    if (base_.size() > static_cast<size_t>(std::max<int64_t>(labels_.count, 2))) {
      fail(describe(node_), ": has ", base_.size(), " base values for ", labels_.count, " classes");
    }
    look_at_votes(plain);
  }

  void look_at_votes(const PlainForest& plain) {
    bool fresh = true;
    one_sided_ = labels_.count <= 2;
    for (const auto& leaf : plain.leaves) {
      for (const LeafWeight& weight : leaf) {
        if (fresh) voted_ = weight.target;
        one_sided_ = one_sided_ && weight.target == voted_;
        positive_ = positive_ && weight.weight >= 0;
        fresh = false;
      }
    }
  }

  ClassLabels labels_;
  std::vector<double> base_;
  PostTransform transform_;
  bool one_sided_ = false;
  bool positive_ = true;
  int64_t voted_ = 0;
};

// Version 5: branches and leaves in lists of their own, numbers as tensors.
class TreeEnsembleOp : public TreeOp {
 public:
  TreeEnsembleOp(OpArguments& arguments, int64_t targets)
      : TreeOp(arguments, read_forest_v5(arguments), targets, read_aggregate_v5(arguments)),
        transform_(post_transform_of(arguments.integer("post_transform", 0), arguments.node())) {}

  Tensors forward(const Tensors& inputs) const override {
    return {fcp::apply(transform_, votes(inputs)).to(inputs[0].scalar_type())};
  }

 private:
  PostTransform transform_;
};

}  // namespace

OpPointer make_tree_ensemble_regressor(OpArguments& arguments) {
  return std::make_unique<TreeRegressor>(arguments, read_targets(arguments));
}

OpPointer make_tree_ensemble_classifier(OpArguments& arguments) {
  return std::make_unique<TreeClassifier>(arguments);
}

OpPointer make_tree_ensemble(OpArguments& arguments) {
  return std::make_unique<TreeEnsembleOp>(arguments, read_targets(arguments));
}

}  // namespace fcp
