// A network that can be calibrated on its own training rows: cross-fitting for CV+
// (fcp/methods/scores/cross.h).
//
// Beside the ensemble of each fold stands a ridge regression (ridge.h): with few rows the answer is
// a mix of both, whose weight has the least error on rows that neither has seen.
//
// The rows are dealt into folds of equal size; the few that are left over train, and do not
// calibrate. For each fold, the whole recipe of `fcp train` (tabular.h), with its encodings, scales
// and choices, runs on all other rows, so that nothing of the trained ensemble has seen the fold.
// The graph holds them all: it answers their mean, and with it, for each row of a fold, what the
// ensemble that did not see it says, compared with the row's own residual:
// fcp/methods/scores/cross.h, and for classes fcp/methods/scores/cross.h. A class that an ensemble
// has never seen is more unusual to it than any other, of its own fold's rows as of new ones.
//
// Cost: as many trainings as there are folds. Tested by tests/training/cross_fit_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/data/array.h"
#include "fcp/training/tabular.h"

namespace fcp {

struct CrossFit {
  // prediction, fcp.cross_low and fcp.cross_high; of classes logits and fcp.cross_margins.
  Graph graph;
  std::vector<size_t> calibrating;  // the n rows of the folds, ascending
  torch::Tensor out_of_fold;        // [n, 1], theirs; of classes their logits [n, C]
  HoldoutError error;               // of out_of_fold
  std::vector<double> tree_share;   // of the trees, of each fold that has any
  double ridge_share = 0;           // of the linear member, the mean over folds
  int64_t folds = 0;
  bool log_target = false;  // learned by its logarithm, in one fold or more
  std::vector<std::string> warnings;
  double seconds = 0;
};

// One target, numbers (mse) or labels (cross-entropy): y is [rows, 1]. `progress` hears of each
// fold that is done.
CrossFit train_crossed(const Array& x, const Array& y, const TabularOptions& options, int64_t folds,
                       const std::function<void(int64_t fold)>& progress = {});

}  // namespace fcp
