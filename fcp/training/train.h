// Training a network on a data set in memory: `fcp train` and the paper's experiments. The result
// is an ONNX graph that takes raw columns and answers in the target's unit.
//
//   TrainResult trained = train_network(data.x, data.y, {.epochs = 10, .seed = 1});
//   write_onnx(trained.graph, "model.onnx");
//
// The defaults are the paper's. Same data, options and thread count: same bits. Small networks (the
// paper's are) train on one thread whatever libtorch is set to, because their products are too
// short to share; the setting is put back afterwards.
// Tested by tests/training/train_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "fcp/data/array.h"
#include "fcp/nn/graph/graph.h"
#include "fcp/training/fit.h"
#include "fcp/training/loss.h"

namespace fcp {

struct TrainOptions {
  std::vector<int64_t> layers{64, 64, 64};  // widths of the hidden layers
  double dropout = 0.1;                     // after the 1st, 3rd, … hidden layer
  double rate = 5e-4;
  double weight_decay = 1e-6;
  int64_t batch = 64;
  int64_t epochs = 10;    // at most; 0 gives the untrained network
  double holdout = 0.05;  // share of rows that chooses the epoch; 0: the last one
  uint64_t seed = 0;
  Loss loss = Loss::kMse;
  double low = 0.05;  // levels of the quantiles
  double high = 0.95;
  bool two_networks = false;      // one network for each quantile, instead of one with two outputs
  int64_t classes = 0;            // cross-entropy; 0: the largest label + 1
  std::vector<double> weights{};  // of the loss: one per target, or one per class; empty: all 1
  bool scale = true;              // standardise x, divide y by mean |y|
};

struct TrainResult {
  Graph graph;
  std::vector<FitHistory> histories;  // one per network: two with two_networks, else one
  double seconds = 0;
};

struct TrainStep {
  size_t network = 0;  // 1 for the high quantile of two_networks
  FitStep fit;
};
using TrainProgress = std::function<void(const TrainStep&)>;

// x [N, columns], y [N, K] or [N]; for cross-entropy y holds labels. `progress` is called after
// every batch. Wrong data or options are an Error; Ctrl-C leaves as Interrupted.
TrainResult train_network(const Array& x, const Array& y, const TrainOptions& options = {},
                          const TrainProgress& progress = {});

// An upper limit of the number of times `progress` is called, for the length of a progress bar.
int64_t most_train_steps(int64_t rows, const TrainOptions& options);

}  // namespace fcp
