// Fitting a stack of networks, each to rows of its own, until its hold-out says stop.
//
// The rate follows one cycle: it rises along a cosine during the first quarter and falls to 0 along
// another. After every epoch each network's loss on its hold-out is measured; the weights of its
// best epoch are kept, and a network that has not improved for `patience` epochs leaves the stack,
// so that the rest goes on faster. Adam; the scales of the inputs learn ten times as fast.
//
// On a CPU each network is a stack of its own, and a thread trains one at a time; elsewhere all are
// one stack, and the host waits once per epoch. Deterministic by seed for a device; where there is
// one network alone, for a thread count too.
// Cost: 6 · epochs · rows · weights multiplications per network, at most.
// Tested by tests/training/ensemble_fit_test.cc.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include <torch/types.h>

#include "fcp/training/loss.h"
#include "fcp/training/member_stack.h"

namespace fcp {

// Which rows a network learns from, and which say when it is best.
struct FitRows {
  std::vector<int64_t> training;
  std::vector<int64_t> holdout;
};

struct EnsembleFitOptions {
  std::vector<int64_t> hidden{256, 256, 128};
  double dropout = 0.1;
  double rate = 3e-3;
  int64_t batch = 256;
  int64_t epochs = 80;
  int64_t patience = 24;
  uint64_t seed = 0;
  torch::Tensor row_weight{};  // [rows], of the loss, on the device of x; undefined: all 1
  torch::Tensor start{};       // [S, P], weights to begin with; undefined: drawn by the seed
};

// Losses in the scale of training, one per epoch that the network took part in.
struct FitCurve {
  int64_t best_epoch = 0;  // from 1; 0 where none was better than the weights to begin with
  std::vector<double> training_loss;
  std::vector<double> holdout_loss;
};

struct EnsembleFit {
  StackShape shape;
  torch::Tensor parameters;      // [S, P], of the best epochs, on the CPU
  std::vector<FitCurve> curves;  // one per network
};

// After a step of one network, or of a stack of them; from any thread, one at a time.
struct EnsembleStep {
  int64_t epoch = 0;        // from 1, as if the networks took turns
  int64_t epochs = 0;       // at most
  int64_t step = 0;         // of all networks and epochs, from 1
  int64_t steps = 0;        // at most
  double loss = 0;          // hold-out loss, the mean of the networks' last epochs; NaN before
  double seconds_left = 0;  // at most, by the time that steps took
};
using EnsembleProgress = std::function<void(const EnsembleStep&)>;

// x [rows, F] and y [rows, K] on the device to train on; `outputs` of the networks by the loss.
// Throws Interrupted between steps, and an Error where no network ever had a finite loss.
EnsembleFit fit_ensemble(const torch::Tensor& x, const torch::Tensor& y,
                         const std::vector<FitRows>& rows, const StackLoss& loss, int64_t outputs,
                         const EnsembleFitOptions& options, const EnsembleProgress& progress = {});

// The outputs of network `network` on rows of x: [n, O] on the CPU.
torch::Tensor network_outputs(const EnsembleFit& fit, int64_t network, const torch::Tensor& x,
                              const std::vector<int64_t>& rows);

// The share of the peak rate after `done` of all steps, in [0, 1].
double one_cycle(double done);

// What all networks of an ensemble share when they are fitted: the length of an epoch, which is
// that of the shortest list of rows; and the seeds, of which each network has its own.

struct FitPlan {
  FitPlan(const std::vector<FitRows>& rows, const EnsembleFitOptions& options);

  int64_t batch = 1;
  int64_t batches = 1;
  std::vector<uint64_t> weights, orders, masks;
};

// Counts the steps of the networks of an ensemble and reports them, one thread at a time.

class FitReport {
 public:
  FitReport(size_t networks, int64_t epochs, int64_t batches, const EnsembleProgress& progress);

  // A step of so many networks is done.
  void advance(int64_t networks);

  // The hold-out loss of a network after an epoch.
  void set_loss(size_t network, double loss);

 private:
  double mean_loss() const;

  std::mutex mutex_;
  const EnsembleProgress& progress_;
  int64_t epochs_, steps_, done_ = 0;
  std::vector<double> losses_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace fcp
