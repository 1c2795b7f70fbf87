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
#include "fcp/training/loss.h"
#include "fcp/training/mlp.h"
#include "fcp/training/training_data.h"

namespace fcp {

// Fitting one network to rows: Adam on shuffled batches, the number of epochs chosen on a hold-out,
// then once more from the same start on all rows.
//
//   1. Of the rows, `holdout` (rounded up) are set aside. Up to `epochs` epochs on the rest; the
//      epoch after which the loss on the hold-out is smallest is the best one.
//   2. From the same initial weights, with a fresh optimiser, as many steps on all rows as the best
//      epoch had taken. An epoch over all rows has a few more batches, so the last one is cut
//      short.
//
// This is what the paper's code does. Without a hold-out all epochs run on all rows, once.
// Cost: at most 2 · epochs · rows forward and backward passes.
// Tested by tests/training/train_test.cc.

struct FitSettings {
  double dropout = 0.1;
  double rate = 5e-4;
  double weight_decay = 1e-6;
  int64_t batch = 64;
  int64_t epochs = 10;  // 0 leaves the network as it was initialised
  double holdout = 0.05;
  uint64_t seed = 0;
};

// Losses are in the scale of training, per epoch of the first pass.
struct FitHistory {
  int64_t best_epoch = 0;             // from 1; 0 where nothing was trained
  int64_t steps = 0;                  // of the optimiser for the network that is returned
  std::vector<double> training_loss;  // mean over the epoch's batches, with dropout
  std::vector<double> holdout_loss;   // after the epoch; empty without a hold-out
};

// What a caller hears after every batch.
struct FitStep {
  bool refit = false;  // second pass
  int64_t epoch = 0;   // from 1
  int64_t batch = 0;   // of the epoch, from 1
  double loss = 0;     // of this batch
};
using FitProgress = std::function<void(const FitStep&)>;

// Trains `mlp` in place from the weights it has. Throws Interrupted between batches, and an Error
// where the loss stops being finite.
FitHistory fit(Mlp& mlp, const TrainingData& data, const LossFunction& loss,
               const FitSettings& options, const FitProgress& progress = {});

// Random numbers of the parts of a fit, each from its own seed so that none depends on how many the
// others drew.
struct FitSeeds {
  uint64_t initial = 0;  // weights
  uint64_t holdout = 0;  // which rows are set aside
  uint64_t search = 0;   // order of rows and dropout, first pass
  uint64_t refit = 0;    // and second pass
};
FitSeeds fit_seeds(uint64_t seed);

// Rows set aside of `rows`: rounded up, but never all of them.
int64_t holdout_rows(int64_t rows, double holdout);

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
