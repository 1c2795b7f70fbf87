#include "fcp/evaluate/measures/evaluation_report.h"

#include <algorithm>

namespace fcp {

void LevelSums::add(const LevelSums& other) {
  rows += other.rows;
  covered += other.covered;
  sizes.add(other.sizes);
}

LevelResult LevelSums::result(const Level& level, double confidence) const {
  const LengthSummary summary = sizes.summary();
  return {level, coverage_of(covered, rows, confidence), summary.mean, summary.infinite_share};
}

LevelSums level_sums(const IntervalBatch& batch, size_t outputs, bool each) {
  LevelSums sums;
  const size_t rows = batch.truth.size() / outputs;
  sums.rows = each ? rows * outputs : rows;
  for (size_t row = 0; row < rows; ++row) {
    bool covered = true;
    for (size_t at = row * outputs; at < (row + 1) * outputs; ++at) {
      const MeasuredRegion region = measure_region(batch, at);
      covered = covered && region.inside;
      if (each) sums.covered += region.inside;
      sums.sizes.add_length(region.length, region.empty);
    }
    if (!batch.inside.empty()) covered = batch.inside[row] != 0;
    if (!each) sums.covered += covered;
  }
  return sums;
}

LevelSums level_sums(const LabelSetBatch& batch, size_t classes) {
  LevelSums sums;
  sums.rows = batch.truth.size();
  for (size_t row = 0; row < sums.rows; ++row) {
    const auto set = batch.members.subspan(row * classes, classes);
    const auto size = static_cast<double>(
        std::count_if(set.begin(), set.end(), [](uint8_t member) { return member != 0; }));
    const int64_t label = batch.truth[row];
    sums.covered += label != kUnknownLabel && set[static_cast<size_t>(label)] != 0;
    sums.sizes.add(0, size);
  }
  return sums;
}

}  // namespace fcp
