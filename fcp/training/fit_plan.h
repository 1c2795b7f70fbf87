// What all networks of an ensemble share when they are fitted: the length of an epoch, which is
// that of the shortest list of rows; and the seeds, of which each network has its own.
#pragma once

#include <cstdint>
#include <vector>

#include "fcp/training/ensemble_fit.h"

namespace fcp {

struct FitPlan {
  FitPlan(const std::vector<FitRows>& rows, const EnsembleFitOptions& options);

  int64_t batch = 1;
  int64_t batches = 1;
  std::vector<uint64_t> weights, orders, masks;
};

}  // namespace fcp
