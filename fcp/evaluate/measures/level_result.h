// Coverage and mean length, or size, at one level, from sums that batches of rows add up to: what a
// report shows at levels besides its own. Exact counts of regions, not readings of a curve.
// Tested by tests/evaluate/measures/level_result_test.cc.
#pragma once

#include <cstddef>

#include "fcp/evaluate/measures/coverage.h"
#include "fcp/evaluate/measures/interval_evaluation.h"
#include "fcp/evaluate/measures/length.h"
#include "fcp/evaluate/measures/set_evaluation.h"
#include "fcp/level.h"

namespace fcp {

struct LevelResult {
  Level level;
  Coverage coverage;
  double size = 0;            // mean length, +∞ if any is infinite; of sets the mean size
  double infinite_share = 0;  // of intervals
};

struct LevelSums {
  size_t rows = 0;
  size_t covered = 0;
  LengthSums sizes;

  void add(const LevelSums& other);
  LevelResult result(const Level& level, double confidence = 0.95) const;  // of at least one row
};

// A row is covered if all of its outputs are; with `each` every output counts as a row.
LevelSums level_sums(const IntervalBatch& batch, size_t outputs, bool each = false);
LevelSums level_sums(const LabelSetBatch& batch, size_t classes);

// For sending them between ranks (distributed/packing.h).
template <typename Archive>
void visit_fields(Archive& archive, LevelSums& sums) {
  archive(sums.rows, sums.covered, sums.sizes.finite_sum, sums.sizes.intervals, sums.sizes.infinite,
          sums.sizes.empty);
}

}  // namespace fcp
