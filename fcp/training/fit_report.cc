#include "fcp/training/fit_report.h"

#include <cmath>
#include <limits>

namespace fcp {

FitReport::FitReport(size_t networks, int64_t epochs, int64_t batches,
                     const EnsembleProgress& progress)
    : progress_(progress),
      epochs_(epochs),
      steps_(static_cast<int64_t>(networks) * epochs * batches),
      losses_(networks, std::numeric_limits<double>::quiet_NaN()),
      start_(std::chrono::steady_clock::now()) {}

void FitReport::advance(int64_t networks) {
  const std::lock_guard lock(mutex_);
  done_ += networks;
  if (!progress_) return;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  const double each = elapsed.count() / static_cast<double>(done_);
  progress_({1 + (done_ - 1) * epochs_ / steps_, epochs_, done_, steps_, mean_loss(),
             each * static_cast<double>(steps_ - done_)});
}

void FitReport::set_loss(size_t network, double loss) {
  const std::lock_guard lock(mutex_);
  losses_[network] = loss;
}

double FitReport::mean_loss() const {
  double sum = 0, count = 0;
  for (const double loss : losses_) {
    if (std::isnan(loss)) continue;
    sum += loss;
    ++count;
  }
  return sum / count;  // NaN before the first epoch is over
}

}  // namespace fcp
