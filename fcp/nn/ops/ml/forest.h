// A forest of decision trees, compiled for speed.
//
// Idea. Every comparison of ONNX's becomes x ≤ t: "<" takes the number before t, "≥" and ">"
// exchange the branches, "=" and set membership are chains of two. A node is then 16 bytes, and a
// step is one load of x and one select; a leaf is a node that leads to itself. Rows go through a
// tree eight at a time, so that the loads of one wait while the others compute, and through all
// trees in blocks that stay in the cache. Blocks are shared among threads.
//
// Thresholds are exact: those of a forest for float inputs are rounded down to float, which changes
// no comparison. Sums over the trees run in double precision, in the order of the trees.
// Cost: rows · trees · depth. Tested by tests/nn/ops/ml/trees_test.cc.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/nn/graph/graph.h"

namespace fcp {

enum class Branch { kLessEqual, kLess, kGreaterEqual, kGreater, kEqual, kNotEqual, kLeaf };
enum class Aggregate { kSum, kAverage, kMin, kMax };

// One node as a file gives it: children are places in the same list.
struct PlainTreeNode {
  Branch branch = Branch::kLeaf;
  int64_t feature = 0;
  double threshold = 0;
  bool missing_is_true = false;  // where NaN goes
  size_t if_true = 0, if_false = 0;
};

struct LeafWeight {
  int32_t target = 0;
  double weight = 0;
};

struct PlainForest {
  std::vector<PlainTreeNode> nodes;
  std::vector<std::vector<LeafWeight>> leaves;  // one list per node; empty at branches
  std::vector<size_t> roots;
};

class Forest {
 public:
  // An Error names the node where a tree has a cycle, or a child or target that does not exist.
  Forest(const PlainForest& plain, int64_t targets, Aggregate aggregate, const Node& node);

  // x [N, F] of float or double, contiguous, F > the largest feature → [N, targets] doubles.
  torch::Tensor run(const torch::Tensor& x) const;

  int64_t features() const { return features_; }

 private:
  template <typename Number>
  struct Step {
    Number threshold;
    int32_t feature;   // with kMissing where NaN goes to child[1]
    int32_t child[2];  // of false and of true
  };
  static constexpr int32_t kMissing = std::numeric_limits<int32_t>::min();

  void compile(const PlainForest& plain, const Node& node);
  void add_leaf(int32_t at, const std::vector<LeafWeight>& weights, int64_t targets,
                const Node& node);
  int32_t add_step(int64_t feature, double threshold, bool missing, int32_t if_false,
                   int32_t if_true);

  template <typename Number>
  void run_block(const std::vector<Step<Number>>& steps, const Number* x, int64_t width,
                 double* out, int64_t first, int64_t last) const;
  template <typename Number, bool kWithMissing>
  void run_rows(const std::vector<Step<Number>>& steps, const Number* x, int64_t width, double* out,
                int64_t first, int64_t last) const;
  void add(int32_t leaf, double* out) const;

  int64_t targets_;
  Aggregate aggregate_;
  int64_t features_ = 0;
  bool missing_ = false;
  bool one_vote_;  // each leaf has one weight for the one target: it stands as its threshold
  std::vector<Step<double>> steps_;
  std::vector<Step<float>> float_steps_;
  std::vector<int32_t> roots_;
  std::vector<int32_t> first_weight_;  // by step: its weights, from here to the next one's
  std::vector<LeafWeight> weights_;
};

}  // namespace fcp
