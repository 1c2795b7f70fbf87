// A network that can be calibrated on its own training rows: cross-fitting for CV+
// (fcp/scores/cross.h).
//
// The rows are dealt into folds. For each fold, the whole recipe of `fcp train` (tabular.h), with
// its encodings, scales and choices, runs on the other folds alone, so that nothing of the trained
// ensemble has seen the fold. The graph holds them all: it answers their mean, and with it, for each
// row, the prediction of the ensemble that did not see it less and plus the row's residual.
//
// Cost: as many trainings as there are folds. Tested by tests/training/cross_fit_test.cc.
#pragma once

#include <cstdint>
#include <functional>

#include <torch/types.h>

#include "fcp/data/array.h"
#include "fcp/training/tabular.h"

namespace fcp {

struct CrossFit {
  Graph graph;                // prediction, fcp.cross_low and fcp.cross_high
  torch::Tensor out_of_fold;  // [n, 1]
  HoldoutError error;         // of out_of_fold
  std::vector<std::string> warnings;
  double seconds = 0;
};

// Regression with one target: y is [n, 1]. `progress` hears of each fold that is done.
CrossFit train_crossed(const Array& x, const Array& y, const TabularOptions& options, int64_t folds,
                       const std::function<void(int64_t fold)>& progress = {});

}  // namespace fcp
