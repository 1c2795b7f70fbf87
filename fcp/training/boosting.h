// Gradient-boosted trees by XGBoost's C API: one booster, stopped where rows set aside say so.
//
//   BoostedTrees fitted = boost(training, holdout, {.loss = BoostLoss::kSquared, .seed = 1});
//
// Trees grow leaf by leaf on histograms of 256 bins; where a number is missing (NaN), each node
// sends it to the side that lowers the loss. The rounds after the best one on the hold-out are
// dropped. A booster runs on the thread that calls: XGBoost gets one thread, so that no team of
// OpenMP's outlives the call and the bits do not depend on the thread count; callers that have
// several boosters run them side by side. Everything random is drawn anew from the seed in each
// round.
//
// Built without XGBoost, can_boost() is false and boost() an Error.
// Cost: rounds · columns · (rows · depth + leaves · bins).
// Reference: Chen and Guestrin, "XGBoost: a scalable tree boosting system", 2016.
// Tested by tests/training/boosting_test.cc.
#pragma once

#include <cstdint>
#include <vector>

namespace fcp {

enum class BoostLoss { kSquared, kAbsolute, kClasses };

struct BoostOptions {
  BoostLoss loss = BoostLoss::kSquared;
  int64_t classes = 0;    // kClasses: at least 2
  int64_t rounds = 1000;  // at most
  int64_t patience = 50;  // rounds without improvement
  double rate = 0.05;
  int64_t leaves = 31;  // of a tree, at most
  double least = 5;     // rows of a leaf, about; of classes the curvature of the loss
  uint64_t seed = 0;
};

struct BoostRows {
  int64_t columns = 0;
  std::vector<float> x{};       // [n, columns], NaN where missing
  std::vector<float> y{};       // [n]; labels from 0
  std::vector<float> weight{};  // of the loss, [n]; empty: all 1

  int64_t rows() const { return static_cast<int64_t>(y.size()); }
};

// x < number goes to `less`, all else to `other`.
struct TreeNode {
  int32_t feature = -1;  // -1: a leaf
  float number = 0;      // the threshold; of a leaf its value
  int32_t less = 0, other = 0;
  bool missing_is_less = false;
};
using Tree = std::vector<TreeNode>;  // the root first

struct BoostedTrees {
  std::vector<Tree> trees;     // tree t adds to output t modulo `outputs`, from 0
  int64_t outputs = 1;         // of two classes 1, the logit of the second; else one per class
  std::vector<float> holdout;  // [n, outputs]: the sums of the trees for the rows set aside
};

bool can_boost();

// Throws Interrupted between rounds.
BoostedTrees boost(const BoostRows& training, const BoostRows& holdout,
                   const BoostOptions& options);

}  // namespace fcp
