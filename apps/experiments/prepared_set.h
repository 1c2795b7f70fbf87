// One seed of one of the paper's regression sets, as all experiments on them start: folds 2 : 2 :
// 1, x standardised and y in units of mean |y|, both by the training fold; and the networks trained
// on it. Sets and networks that several experiments share are loaded and trained once a process.
//
// Tested by tests/experiments/regression_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
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

// Values made once by whoever asks first, for all threads: the others wait for it. What could not
// be made is tried again by the next who asks.

template <typename Value>
class Memo {
 public:
  using Shared = std::shared_ptr<const Value>;

  Shared get(const std::string& key, const std::function<Value()>& make) {
    std::promise<Shared> promise;
    std::shared_future<Shared> value;
    {
      const std::lock_guard lock(mutex_);
      const auto found = values_.find(key);
      if (found != values_.end()) value = found->second;
      if (!value.valid()) values_[key] = promise.get_future().share();
    }
    if (value.valid()) return value.get();
    try {
      const auto made = std::make_shared<const Value>(make());
      promise.set_value(made);
      return made;
    } catch (...) {
      promise.set_exception(std::current_exception());
      const std::lock_guard lock(mutex_);
      values_.erase(key);
      throw;
    }
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_future<Shared>> values_;
};

// Data sets made of random numbers, the same for the same seed.
//
// Tested by tests/experiments/prepared_set_test.cc.

struct SyntheticOptions {
  size_t rows = 10000;
  size_t inputs = 100;
  size_t outputs = 10;
};

// The paper's multi-dimensional set: X uniform in [0, 1), Y = XW + ε, W uniform in [0, 1) and drawn
// once, ε standard normal.
DataSet synthetic_set(uint64_t seed, const SyntheticOptions& options = {});

// A plain network y = W₃ relu(W₂ relu(W₁ x + b₁) + b₂) + b₃; weights[i] is [outputs, inputs].
struct DenseNetwork {
  std::vector<Array> weights;
  std::vector<Array> biases;
};

Array evaluate(const DenseNetwork& network, const Array& x);

struct ZeroQuantileOptions {
  size_t rows = 10000;
  size_t inputs = 100;
  size_t width = 64;
  double zero_share = 0.901;
};

// The set of the paper's appendix on zero quantiles: y = f*(x) + ε, f* a random three-layer
// network, x uniform in [0, 1), ε = 0 with probability 0.901 and standard normal otherwise, so that
// the 90 % quantile of |y − f*(x)| is 0. (The paper prints 0.009 for the other probability; the two
// must sum to 1, so 0.099 is meant. It does not give the sizes; these are our defaults.)
struct ZeroQuantileSet {
  DataSet data;
  DenseNetwork truth;
  // ε alone, [N, 1]: added to f* as another runtime computes it, it gives exact zeros there too.
  Array noise;
};

ZeroQuantileSet zero_quantile_set(uint64_t seed, const ZeroQuantileOptions& options = {});

// For demonstrations: minutes a delivery takes, from eight named features. The noise grows from
// about 1 minute (near, no traffic) to about 20 (far, dense traffic, rain), so a band of one width
// for all is a bad answer.
DataSet demo_set(uint64_t seed, size_t rows = 6000);

}  // namespace fcp
