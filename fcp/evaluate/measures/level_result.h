// Coverage and mean length, or size, at one level, from sums that batches of rows add up to: what a
// report shows at levels besides its own. Exact counts of regions, not readings of a curve.
// Tested by tests/evaluation/level_result_test.cc.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fcp/conformal/level.h"
#include "fcp/evaluation/coverage.h"
#include "fcp/evaluation/interval_evaluation.h"
#include "fcp/evaluation/length.h"
#include "fcp/evaluation/set_evaluation.h"

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

// A row is covered if all of its outputs are.
LevelSums level_sums(const IntervalBatch& batch, size_t outputs);
LevelSums level_sums(const LabelSetBatch& batch, size_t classes);

// As plain numbers, to be sent between ranks.
std::vector<double> pack_sums(const LevelSums& sums);
LevelSums unpack_sums(std::span<const double> numbers);

}  // namespace fcp
