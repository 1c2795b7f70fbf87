#include "fcp/training/fit_plan.h"

#include <algorithm>

#include "fcp/base/random.h"

namespace fcp {

FitPlan::FitPlan(const std::vector<FitRows>& rows, const EnsembleFitOptions& options) {
  size_t shortest = rows[0].training.size();
  for (const FitRows& own : rows) shortest = std::min(shortest, own.training.size());
  batch = std::min<int64_t>(options.batch, static_cast<int64_t>(shortest));
  batches = static_cast<int64_t>(shortest) / batch;
  Random random(options.seed);
  for (std::vector<uint64_t>* seeds : {&weights, &orders, &masks}) {
    for (size_t s = 0; s < rows.size(); ++s) seeds->push_back(random.bits());
  }
}

}  // namespace fcp
