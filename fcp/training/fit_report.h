// Counts the steps of the networks of an ensemble and reports them, one thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "fcp/training/ensemble_fit.h"

namespace fcp {

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
