// A calibrated predictor brought up to date with new rows: the same score, cut, heads and options,
// other calibration rows.
//
//   merge    the old scores and those of all new rows: for more rows of the same kind
//   window   the newest N rows; where there are fewer, old scores as many as fit, by the seed
//   since    the new rows from a time on, and no old ones
//
// The file keeps where it comes from: its version, the hash of the file before, and one line per
// version in `history`. Rows that a version was calibrated on already are refused: a row is told by
// its score, which is the same in any order and batch, so that shuffled rows and a log that has
// grown are recognised as well. Scores that repeat by chance are allowed for (overlap_chance).
// Tested by tests/calibrate/update_test.cc and recalibration_test.cc.
#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "fcp/calibrate/calibrate.h"
#include "fcp/data/rows.h"
#include "fcp/predictor/artifact.h"
#include "fcp/predictor/context.h"
#include "fcp/predictor/open_data.h"

namespace fcp {

struct UpdateOptions {
  size_t window = 0;                 // N; 0: no window
  std::string since{};               // a time; empty: all rows
  std::vector<std::string> times{};  // of all rows, for since
  RowFacts facts{};                  // as read_facts_for gives them
  std::string data_name{};           // of the new rows, for messages and the history
  std::string file_sha256{};         // of the file that is updated
};

// Whether new rows are among the old ones, by their scores, as float32 numbers. The overlap is the
// size of the intersection of both multisets. If all rows were drawn from one distribution, any
// assignment of the scores to old and new would be as likely as any other, ties included. Returned
// is an upper bound on the probability of at least the overlap that is found (Chernoff's, over
// hypergeometric counts of each score that occurs more than once): near 1 for independent rows of
// discrete data, at most 2⁻²⁰ for twenty rows that are given again to as many old ones.
struct Overlap {
  size_t rows = 0;
  double chance = 1;
};
Overlap overlap_chance(std::span<const double> old_scores, std::span<const double> new_scores);

CalibrateResult update(const CalibrationArtifact& artifact, RowSource& source,
                       const UpdateOptions& options, const Context& context);

// What calibrates such a file anew: `asked` with everything that is not among the names `told` as
// the artifact has it. Another score that is told brings its own defaults, and so does another
// calibration; the cut stays where the score works on features.
MethodRequest recalibration_request(const CalibrationArtifact& artifact, const MethodRequest& asked,
                                    const std::set<std::string>& told);

}  // namespace fcp
