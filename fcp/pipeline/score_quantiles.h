// What `calibrate --levels` does with scores: each rank keeps those of the batches it scored, and
// in the end all ranks find together the few that the levels need (fcp/distributed/selection.h). No
// rank ever has them all, and the result is the same, bit by bit, for any number of ranks.
//
// Cost: 8 bytes per row and side, and 8 for the baseline, over all ranks. Tested by
// tests/cli/test_levels.py and tests/cli/test_ranks.py.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fcp/calibration/artifact.h"
#include "fcp/distributed/communicator.h"

namespace fcp {

class ScoreQuantiles {
 public:
  // `rows`: how many this rank will have, about, for memory in one piece.
  ScoreQuantiles(int64_t sides, size_t rows);

  // Scores row by row, none of them NaN.
  void take(std::span<const double> scores, std::span<const double> baseline);

  // On all ranks at once: the scores of calibrated.rows.levels, and the number of rows.
  void finish(Communicator& ranks, CalibrationArtifact& artifact);

 private:
  // As keys in the order of the scores, which selection works on.
  std::vector<std::vector<uint64_t>> sides_;
  std::vector<uint64_t> baseline_;
};

}  // namespace fcp
