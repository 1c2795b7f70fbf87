// TreeEnsembleRegressor, TreeEnsembleClassifier and TreeEnsemble of version 5: votes of a forest,
// aggregated per target, plus base values, transformed. A classifier of two classes whose leaves
// vote for one of them alone gets the other's score as ONNX Runtime does: 1 − s where all votes are
// positive (shares of a class), else −s, which a logistic transform turns into probabilities.
//
// Runs on the CPU. Gradient: none, trees jump. Bounds: none.
// Reference: ONNX operator specification of ai.onnx.ml, versions 1 to 5.
// Tested by tests/nn/ops/ml/trees_test.cc.
#include "fcp/nn/ops/ml/trees.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/ml/forest.h"
#include "fcp/nn/ops/ml/transforms.h"
#include "fcp/nn/ops/shared.h"

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

namespace {

Branch branch_of(const std::string& mode, const Node& node) {
  static const std::map<std::string, Branch> names = {{"BRANCH_LEQ", Branch::kLessEqual},
                                                      {"BRANCH_LT", Branch::kLess},
                                                      {"BRANCH_GTE", Branch::kGreaterEqual},
                                                      {"BRANCH_GT", Branch::kGreater},
                                                      {"BRANCH_EQ", Branch::kEqual},
                                                      {"BRANCH_NEQ", Branch::kNotEqual},
                                                      {"LEAF", Branch::kLeaf}};
  const auto found = names.find(mode);
  if (found == names.end()) fail(describe(node), ": a tree has the unknown mode '", mode, "'");
  return found->second;
}

std::vector<double> values_of(const torch::Tensor& tensor) {
  const torch::Tensor wide = tensor.to(torch::kDouble).contiguous();
  return {wide.data_ptr<double>(), wide.data_ptr<double>() + wide.numel()};
}

void expect_length(size_t found, size_t expected, const std::string& name, const Node& node) {
  if (found != expected) {
    fail(describe(node), ": attribute '", name, "' has ", found, " elements, expected ", expected);
  }
}

using NodeKey = std::pair<int64_t, int64_t>;  // tree and node

struct NodeKeyHash {
  size_t operator()(const NodeKey& key) const {
    constexpr uint64_t kOdd = 0x9E3779B97F4A7C15;  // consecutive trees lie far apart
    return static_cast<size_t>(static_cast<uint64_t>(key.first) * kOdd +
                               static_cast<uint64_t>(key.second));
  }
};

}  // namespace

std::vector<double> numbers_or_tensor(OpArguments& arguments, const std::string& name) {
  const torch::Tensor tensor = arguments.tensor(name + "_as_tensor");
  if (tensor.defined()) return values_of(tensor);
  const std::vector<float> numbers = arguments.numbers(name);
  return {numbers.begin(), numbers.end()};
}

PlainForest read_forest(OpArguments& arguments, const std::string& votes) {
  const Node& node = arguments.node();
  const std::vector<int64_t> trees = arguments.integers("nodes_treeids");
  const std::vector<int64_t> ids = arguments.integers("nodes_nodeids");
  const std::vector<int64_t> features = arguments.integers("nodes_featureids");
  const std::vector<int64_t> if_true = arguments.integers("nodes_truenodeids");
  const std::vector<int64_t> if_false = arguments.integers("nodes_falsenodeids");
  const std::vector<int64_t> missing = arguments.integers("nodes_missing_value_tracks_true");
  const std::vector<std::string> modes = arguments.texts("nodes_modes");
  const std::vector<double> values = numbers_or_tensor(arguments, "nodes_values");
  arguments.ignore("nodes_hitrates");
  arguments.ignore("nodes_hitrates_as_tensor");
  const size_t count = ids.size();
  expect_length(trees.size(), count, "nodes_treeids", node);
  expect_length(features.size(), count, "nodes_featureids", node);
  expect_length(if_true.size(), count, "nodes_truenodeids", node);
  expect_length(if_false.size(), count, "nodes_falsenodeids", node);
  expect_length(modes.size(), count, "nodes_modes", node);
  expect_length(values.size(), count, "nodes_values", node);
  if (!missing.empty())
    expect_length(missing.size(), count, "nodes_missing_value_tracks_true", node);

  std::unordered_map<NodeKey, size_t, NodeKeyHash> place;
  place.reserve(count);
  PlainForest forest;
  for (size_t i = 0; i < count; ++i) {
    if (!place.emplace(NodeKey(trees[i], ids[i]), i).second) {
      fail(describe(node), ": tree ", trees[i], " has the node ", ids[i], " twice");
    }
    // The first node of each tree is its root.
    if (i == 0 || trees[i] != trees[i - 1]) forest.roots.push_back(i);
  }
  const auto place_of = [&](int64_t tree, int64_t id) {
    const auto found = place.find({tree, id});
    if (found == place.end()) fail(describe(node), ": tree ", tree, " has no node ", id);
    return found->second;
  };
  forest.nodes.resize(count);
  for (size_t i = 0; i < count; ++i) {
    PlainTreeNode& made = forest.nodes[i];
    made.branch = branch_of(modes[i], node);
    if (made.branch == Branch::kLeaf) continue;
    made.feature = features[i];
    made.threshold = values[i];
    made.missing_is_true = !missing.empty() && missing[i] != 0;
    made.if_true = place_of(trees[i], if_true[i]);
    made.if_false = place_of(trees[i], if_false[i]);
  }
  const std::vector<int64_t> vote_trees = arguments.integers(votes + "_treeids");
  const std::vector<int64_t> vote_nodes = arguments.integers(votes + "_nodeids");
  const std::vector<int64_t> vote_ids = arguments.integers(votes + "_ids");
  const std::vector<double> weights = numbers_or_tensor(arguments, votes + "_weights");
  expect_length(vote_trees.size(), weights.size(), votes + "_treeids", node);
  expect_length(vote_nodes.size(), weights.size(), votes + "_nodeids", node);
  expect_length(vote_ids.size(), weights.size(), votes + "_ids", node);
  forest.leaves.resize(count);
  for (size_t i = 0; i < weights.size(); ++i) {
    forest.leaves[place_of(vote_trees[i], vote_nodes[i])].push_back(
        {static_cast<int32_t>(vote_ids[i]), weights[i]});
  }
  return forest;
}

namespace {

// The sets of BRANCH_MEMBER, which stand one after the other with NaN between them.
std::vector<std::vector<double>> member_sets(OpArguments& arguments) {
  std::vector<std::vector<double>> sets;
  const torch::Tensor members = arguments.tensor("membership_values");
  if (!members.defined()) return sets;
  sets.emplace_back();
  for (const double value : values_of(members)) {
    if (std::isnan(value)) {
      sets.emplace_back();
    } else {
      sets.back().push_back(value);
    }
  }
  return sets;
}

// x ∈ {a, b, …} as x = a or x = b or …; the chain's first question stands at `at`.
void add_membership(PlainForest& forest, size_t at, const std::vector<double>& members) {
  const PlainTreeNode question = forest.nodes[at];
  size_t current = at;
  for (size_t i = 0; i < members.size(); ++i) {
    forest.nodes[current].branch = Branch::kEqual;
    forest.nodes[current].threshold = members[i];
    if (i + 1 == members.size()) break;
    forest.nodes.push_back(question);
    forest.leaves.emplace_back();
    forest.nodes[current].if_false = forest.nodes.size() - 1;
    current = forest.nodes.size() - 1;
  }
}

}  // namespace

PlainForest read_forest_v5(OpArguments& arguments) {
  const Node& node = arguments.node();
  const std::vector<int64_t> roots = arguments.integers("tree_roots");
  const std::vector<int64_t> features = arguments.integers("nodes_featureids");
  const std::vector<int64_t> if_true = arguments.integers("nodes_truenodeids");
  const std::vector<int64_t> if_false = arguments.integers("nodes_falsenodeids");
  const std::vector<int64_t> true_leaf = arguments.integers("nodes_trueleafs");
  const std::vector<int64_t> false_leaf = arguments.integers("nodes_falseleafs");
  const std::vector<int64_t> missing = arguments.integers("nodes_missing_value_tracks_true");
  const std::vector<int64_t> targets = arguments.integers("leaf_targetids");
  arguments.ignore("nodes_hitrates");
  const torch::Tensor modes = arguments.tensor("nodes_modes");
  const torch::Tensor splits = arguments.tensor("nodes_splits");
  const torch::Tensor weights = arguments.tensor("leaf_weights");
  if (!modes.defined() || !splits.defined() || !weights.defined()) {
    fail(describe(node), ": nodes_modes, nodes_splits or leaf_weights is missing");
  }
  const std::vector<double> mode = values_of(modes), split = values_of(splits);
  const std::vector<double> weight = values_of(weights);
  const size_t count = features.size();
  for (const auto& [name, length] :
       std::map<std::string, size_t>{{"nodes_truenodeids", if_true.size()},
                                     {"nodes_falsenodeids", if_false.size()},
                                     {"nodes_trueleafs", true_leaf.size()},
                                     {"nodes_falseleafs", false_leaf.size()},
                                     {"nodes_modes", mode.size()},
                                     {"nodes_splits", split.size()}}) {
    expect_length(length, count, name, node);
  }
  expect_length(targets.size(), weight.size(), "leaf_targetids", node);
  if (!missing.empty())
    expect_length(missing.size(), count, "nodes_missing_value_tracks_true", node);

  // Branches first, then the leaves.
  PlainForest forest;
  forest.nodes.resize(count + weight.size());
  forest.leaves.resize(count + weight.size());
  for (size_t i = 0; i < weight.size(); ++i) {
    forest.leaves[count + i] = {{static_cast<int32_t>(targets[i]), weight[i]}};
  }
  const auto child = [&](int64_t id, bool leaf) {
    const auto limit = static_cast<int64_t>(leaf ? weight.size() : count);
    if (id < 0 || id >= limit)
      fail(describe(node), ": a tree has no ", leaf ? "leaf " : "node ", id);
    return static_cast<size_t>(id) + (leaf ? count : 0);
  };
  const std::vector<std::vector<double>> sets = member_sets(arguments);
  size_t next_set = 0;
  for (size_t i = 0; i < count; ++i) {
    PlainTreeNode& made = forest.nodes[i];
    made.feature = features[i];
    made.threshold = split[i];
    made.missing_is_true = !missing.empty() && missing[i] != 0;
    made.if_true = child(if_true[i], true_leaf[i] != 0);
    made.if_false = child(if_false[i], false_leaf[i] != 0);
    if (!(mode[i] >= 0 && mode[i] <= 6)) fail(describe(node), ": a tree has the mode ", mode[i]);
    made.branch = static_cast<Branch>(static_cast<int>(mode[i]));
    if (mode[i] == 6) {
      if (next_set >= sets.size() || sets[next_set].empty()) {
        fail(describe(node), ": membership_values has too few sets");
      }
      add_membership(forest, i, sets[next_set++]);
    }
  }
  for (const int64_t root : roots) forest.roots.push_back(child(root, false));
  return forest;
}

Aggregate read_aggregate(OpArguments& arguments) {
  static const std::map<std::string, Aggregate> names = {{"SUM", Aggregate::kSum},
                                                         {"AVERAGE", Aggregate::kAverage},
                                                         {"MIN", Aggregate::kMin},
                                                         {"MAX", Aggregate::kMax}};
  const std::string text = arguments.text("aggregate_function", "SUM");
  const auto found = names.find(text);
  if (found == names.end()) {
    fail(describe(arguments.node()), ": attribute 'aggregate_function' is '", text,
         "', expected SUM, AVERAGE, MIN or MAX");
  }
  return found->second;
}

Aggregate read_aggregate_v5(OpArguments& arguments) {
  switch (arguments.integer("aggregate_function", 1)) {
    case 0:
      return Aggregate::kAverage;
    case 1:
      return Aggregate::kSum;
    case 2:
      return Aggregate::kMin;
    case 3:
      return Aggregate::kMax;
    default:
      fail(describe(arguments.node()), ": attribute 'aggregate_function' must be 0 to 3");
  }
}

torch::Tensor ClassLabels::of(const torch::Tensor& classes) const {
  if (!integers.defined()) return {};
  return integers.index_select(0, classes.clamp_max(integers.numel() - 1));
}

ClassLabels read_labels(OpArguments& arguments) {
  ClassLabels labels;
  std::vector<int64_t> integers = arguments.integers("classlabels_int64s");
  if (integers.empty()) integers = arguments.integers("classlabels_ints");
  const std::vector<std::string> texts = arguments.texts("classlabels_strings");
  if (!integers.empty()) labels.integers = torch::tensor(integers, torch::kLong);
  labels.count = static_cast<int64_t>(integers.empty() ? texts.size() : integers.size());
  if (labels.count == 0) fail(describe(arguments.node()), ": has no class labels");
  return labels;
}

}  // namespace fcp
