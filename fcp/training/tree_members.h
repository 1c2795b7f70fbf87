// Gradient-boosted members beside the networks of a tabular ensemble (tabular.h).
//
// Member e has a booster (boosting.h) that learns from the rows of network e and stops by the rows
// that network e has not seen, so that what it says of them is out of fold as well. Boosters read
// raw columns, missing values included. Of a category with more than ten one-hot columns they read
// a target statistic instead (target_statistics.h), of one with fewer both.
//
// The prediction is (1 − w) network + w trees, for each target the w of 0, 0.05, …, 1 that has the
// least out-of-fold loss of its centre: squared error, absolute error, or cross-entropy of logits.
// Networks may come half trained: where w leaves them enough weight, they are trained on.
//
// Where heads will be fitted, a second booster learns log |residual of the mix| of the rows of its
// member, out of fold too: what trees see of the spread.
//
// What all boosters may cost is counted, rounds · rows · columns · outputs, never timed: on wide
// tables a short first booster chooses the columns, and where even few rounds are too many there
// are no trees. Boosters run side by side on threads; bits do not depend on their number.
// Tested by tests/training/tree_members_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <torch/types.h>

#include "fcp/data/array.h"
#include "fcp/training/boosting.h"
#include "fcp/training/ensemble_fit.h"
#include "fcp/training/loss.h"

namespace fcp {

// The one-hot columns of a category.
struct CategoryColumns {
  int64_t first = 0, count = 0;
  bool operator==(const CategoryColumns&) const = default;
};

// Statistics of categories: [N, L] one-hot columns · levels + mean.
struct CategoryStatistics {
  torch::Tensor levels;  // [L, S], statistic less mean
  torch::Tensor mean;    // [S]
};

// The trees of all members for one quantity: member e's output j is column e · outputs + j.
// Features count through a row of [columns | statistics of member 0 | of member 1 | …].
struct MemberForest {
  std::vector<Tree> trees;
  std::vector<int64_t> columns;  // that each tree adds to
  int64_t outputs = 1;           // of each member
};

struct TreeMembers {
  std::vector<int64_t> category_columns;       // L; those that statistics are taken of
  std::vector<CategoryStatistics> statistics;  // one per member; empty without such columns
  MemberForest answers, spreads;               // no spreads: spreads.trees is empty
  torch::Tensor out_of_fold;      // of the answers [N, outputs]; NaN of rows that all have seen
  std::vector<double> share;      // w of each target; of classes one
  bool without_networks = false;  // all w are 1, and nobody reads the networks' features
  bool used() const;              // whether any w is above 0
};

struct TreeData {
  const Array& x;        // raw columns, and those of the calendar
  torch::Tensor y;       // [N, K] in the scale of learning; labels
  torch::Tensor weight;  // of classes [C]; undefined: 1
  int64_t classes = 0;   // 0: numbers
  bool median = false;   // the centre
  std::vector<CategoryColumns> categories;
  torch::Tensor row_weight{};               // of the loss [N], on the CPU; undefined: all 1
  const std::vector<int64_t>* groups = {};  // of the rows, which statistics keep together; or none
};

struct TreeMemberOptions {
  bool heads = false;  // will read the features
  uint64_t seed = 0;
  int64_t rounds = 1000;  // of the answers, at most
  double rate = 0.05;
  // Trains the networks on and returns what they then say; empty: they are trained.
  std::function<torch::Tensor()> train_on{};
};

// `networks` [N, outputs] is what network e says of the rows that it has not seen, in the scale of
// learning: K centres, or logits; by them trees learn nothing, but w is chosen. Without XGBoost, or
// where trees would cost too much, the result is not used().
TreeMembers fit_tree_members(const TreeData& data, const std::vector<FitRows>& rows,
                             const torch::Tensor& networks, const TreeMemberOptions& options);

// Logits that the boosters' outputs stand for, [outputs, classes]: of two classes −½ and ½ of the
// one output. The identity of numbers.
torch::Tensor tree_answer_matrix(int64_t outputs, int64_t targets);

}  // namespace fcp
