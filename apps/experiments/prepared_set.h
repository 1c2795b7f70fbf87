// One seed of one of the paper's regression sets, as all experiments on them start: folds 2 : 2 :
// 1, x standardised and y in units of mean |y|, both by the training fold; and the networks trained
// on it. Sets and networks that several experiments share are loaded and trained once a process.
//
// Tested by tests/experiments/regression_test.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/data/array.h"
#include "fcp/nn/graph/graph.h"
#include "fcp/training/loss.h"

#include "apps/experiments/experiment.h"

namespace fcp {

struct PreparedSet {
  std::string name;  // "bio"; "meps21 (rebuilt)"
  uint64_t seed = 0;
  Array x_training, y_training;
  torch::Tensor x_calibration, y_calibration;
  torch::Tensor x_test, y_test;
  double unit = 1;      // what y was divided by
  bool shared = false;  // name and seed say which set it is, so that its networks can be shared
  std::shared_ptr<const Graph> network{};  // in the place of trained ones
};

PreparedSet prepare(const DataSet& data, uint64_t seed);

// The set of a cell: one of the paper's, "synthetic", or "demo", the built-in one with a single
// response; small where the options are quick. MissingData where its file is not there.
PreparedSet prepare_cell(const CellKey& key, const ExperimentOptions& options);

// The set as loaded, or made for "synthetic" and "demo". An Error where a file is missing.
DataSet load_regression_set(const std::string& name, const std::string& data_dir, uint64_t seed);

// The names of load_paper_set, and those and "synthetic".
const std::vector<std::string>& one_dimensional_sets();
const std::vector<std::string>& regression_sets();

// The paper's network, trained its way on the training fold; quantiles have a network each. No
// epochs: as it was initialised.
std::shared_ptr<const Graph> trained_network(const PreparedSet& set, Loss loss, int64_t epochs);

// A fifth of the rows, at random, and the others.
struct SplitRows {
  torch::Tensor slice, rest;
};
SplitRows split_rows(const torch::Tensor& rows, uint64_t seed);

}  // namespace fcp
