// Forests against a walk that takes one node at a time, for every comparison, with numbers that are
// missing, equal to thresholds and infinite.
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "fcp/base/random.h"
#include "fcp/nn/ops/ml/forest.h"

#include "tests/nn/ops/op_testing.h"

namespace fcp {
namespace {

using testing::HasSubstr;

constexpr int64_t kFeatures = 5, kTargets = 3;

bool goes_true(const PlainTreeNode& node, double x) {
  if (std::isnan(x)) return node.missing_is_true || node.branch == Branch::kNotEqual;
  switch (node.branch) {
    case Branch::kLessEqual:
      return x <= node.threshold;
    case Branch::kLess:
      return x < node.threshold;
    case Branch::kGreaterEqual:
      return x >= node.threshold;
    case Branch::kGreater:
      return x > node.threshold;
    case Branch::kEqual:
      return x == node.threshold;
    default:
      return x != node.threshold;
  }
}

// Few different thresholds and inputs, so that they often meet.
double coarse(Random& random) { return std::round(random.normal() * 2) / 2; }

size_t grow(PlainForest& forest, Random& random, int depth) {
  const size_t at = forest.nodes.size();
  forest.nodes.emplace_back();
  forest.leaves.emplace_back();
  if (depth == 0 || random.uniform() < 0.2) {
    for (int32_t target = 0; target < kTargets; ++target) {
      if (random.uniform() < 0.7) forest.leaves[at].push_back({target, random.normal()});
    }
    return at;
  }
  PlainTreeNode node;
  node.branch = static_cast<Branch>(static_cast<int>(random.uniform() * 6));
  node.feature = static_cast<int64_t>(random.uniform() * kFeatures);
  node.threshold = coarse(random);
  node.missing_is_true = random.uniform() < 0.5;
  node.if_true = grow(forest, random, depth - 1);
  node.if_false = grow(forest, random, depth - 1);
  forest.nodes[at] = node;
  return at;
}

PlainForest random_forest(Random& random, int trees) {
  PlainForest forest;
  for (int i = 0; i < trees; ++i) forest.roots.push_back(grow(forest, random, 6));
  return forest;
}

std::vector<double> slow_walk(const PlainForest& forest, const double* x) {
  std::vector<double> totals(kTargets, 0);
  for (size_t at : forest.roots) {
    while (forest.nodes[at].branch != Branch::kLeaf) {
      const PlainTreeNode& node = forest.nodes[at];
      at = goes_true(node, x[node.feature]) ? node.if_true : node.if_false;
    }
    for (const LeafWeight& weight : forest.leaves[at]) {
      totals[static_cast<size_t>(weight.target)] += weight.weight;
    }
  }
  return totals;
}

TEST(Forest, IsTheWalkThatTakesOneNodeAtATime) {
  Random random(1);
  for (int trial = 0; trial < 20; ++trial) {
    const PlainForest plain = random_forest(random, 15);
    const Forest forest(plain, kTargets, Aggregate::kSum, node("TreeEnsembleRegressor", 1));
    torch::Tensor x = torch::empty({203, kFeatures}, torch::kDouble);
    double* numbers = x.data_ptr<double>();
    for (int64_t i = 0; i < x.numel(); ++i) {
      const double kind = random.uniform();
      numbers[i] = kind < 0.1    ? std::nan("")
                   : kind < 0.13 ? std::numeric_limits<double>::infinity()
                                 : coarse(random);
    }
    const torch::Tensor found = forest.run(x), single = forest.run(x.to(torch::kFloat));
    for (int64_t row = 0; row < x.size(0); ++row) {
      const std::vector<double> expected = slow_walk(plain, numbers + row * kFeatures);
      for (int64_t k = 0; k < kTargets; ++k) {
        EXPECT_NEAR(found[row][k].item<double>(), expected[static_cast<size_t>(k)], 1e-12);
      }
    }
    EXPECT_TRUE(torch::equal(found, single));
  }
}

// A tree of one question: x0 (mode) 1 ? 10 : 20.
Node stump(const std::string& mode, std::map<std::string, Attribute> more = {}) {
  std::map<std::string, Attribute> attributes = {
      {"nodes_treeids", std::vector<int64_t>{0, 0, 0}},
      {"nodes_nodeids", std::vector<int64_t>{0, 1, 2}},
      {"nodes_featureids", std::vector<int64_t>{0, 0, 0}},
      {"nodes_truenodeids", std::vector<int64_t>{1, 0, 0}},
      {"nodes_falsenodeids", std::vector<int64_t>{2, 0, 0}},
      {"nodes_modes", std::vector<std::string>{mode, "LEAF", "LEAF"}},
      {"nodes_values", std::vector<float>{1, 0, 0}},
      {"target_treeids", std::vector<int64_t>{0, 0}},
      {"target_nodeids", std::vector<int64_t>{1, 2}},
      {"target_ids", std::vector<int64_t>{0, 0}},
      {"target_weights", std::vector<float>{10, 20}}};
  for (auto& [name, value] : more) attributes[name] = value;
  Node made = node("TreeEnsembleRegressor", 1, attributes);
  made.domain = "ai.onnx.ml";
  return made;
}

TEST(TreeRegressor, AggregatesAndAddsBaseValues) {
  const torch::Tensor x = torch::tensor({0.0f, 1.0f, 2.0f}).reshape({3, 1});
  EXPECT_TRUE(
      torch::equal(run(stump("BRANCH_LT", {{"base_values", std::vector<float>{0.5f}}}), {x}),
                   torch::tensor({10.5f, 20.5f, 20.5f}).reshape({3, 1})));
  for (const char* how : {"SUM", "AVERAGE", "MIN", "MAX"}) {
    EXPECT_TRUE(
        torch::equal(run(stump("BRANCH_LEQ", {{"aggregate_function", std::string(how)}}), {x}),
                     torch::tensor({10.0f, 10.0f, 20.0f}).reshape({3, 1})));
  }
}

TEST(TreeRegressor, FaultsAreNamed) {
  const torch::Tensor x = torch::zeros({1, 1});
  EXPECT_THAT(error_of(stump("BRANCH_MAYBE"), {x}), HasSubstr("unknown mode 'BRANCH_MAYBE'"));
  EXPECT_THAT(
      error_of(stump("BRANCH_LT", {{"nodes_truenodeids", std::vector<int64_t>{7, 0, 0}}}), {x}),
      HasSubstr("tree 0 has no node 7"));
  EXPECT_THAT(
      error_of(stump("BRANCH_LT", {{"nodes_truenodeids", std::vector<int64_t>{0, 0, 0}}}), {x}),
      HasSubstr("leads back to its own node"));
  EXPECT_THAT(error_of(stump("BRANCH_LT", {{"target_ids", std::vector<int64_t>{0, 4}}}), {x}),
              HasSubstr("votes for target 4 of 1"));
  EXPECT_THAT(
      error_of(stump("BRANCH_LT", {{"nodes_featureids", std::vector<int64_t>{3, 0, 0}}}), {x}),
      HasSubstr("expected at least 4 columns"));
}

}  // namespace
}  // namespace fcp
