// The scores of all rows of a source: one loop over its batches, which ranks share, a checkpoint
// remembers and other threads make ready (batch_stream.h). Rank 0 puts batches together in their
// order; where the radii of some levels are all that is wanted, each rank keeps its scores instead,
// and in the end all ranks find together the few that the levels need
// (fcp/distributed/selection.h). The result is the same, bit by bit, for any number of ranks.
//
// Cost for levels: 8 bytes per row and side, and 8 for the baseline, over all ranks.
// Tested by tests/calibrate/calibrate_test.cc, tests/cli/test_levels.py, tests/cli/test_ranks.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/calibrate/batch_stream.h"
#include "fcp/calibrate/calibrate.h"
#include "fcp/calibrate/choose.h"
#include "fcp/data/row_digest.h"
#include "fcp/data/rows.h"
#include "fcp/methods/method.h"
#include "fcp/predictor/context.h"
#include "fcp/predictor/predictor_core.h"

namespace fcp {

struct CollectOptions {
  std::string data_name{};      // of the rows, for messages
  std::string stage = "score";  // what the observer hears
  std::vector<Level> levels{};  // whose scores are kept; empty: all scores are
  bool keeps_rows = false;      // instead of hashing them; of one rank without a checkpoint
  bool hashes = true;
  std::optional<std::string> checkpoint{};  // file to go on from and to keep batches in
  std::string work{};  // hash of all that decides the scores but the rows: for the checkpoint
};

// On rank 0 of all rows; on other ranks nothing.
struct CollectedScores {
  CalibrationScores rows{};        // in the order of the rows; with levels those of the levels
  std::vector<double> baseline{};  // likewise
  std::vector<double> first{};     // at most 1,024 of the first batch, whatever the levels
  std::vector<double> chances{};   // see ScoredBatch
  std::vector<int64_t> labels{};   // likewise
  size_t seen = 0;                 // rows, those left out included
  size_t reached = 0;              // see ScoredBatch
  std::string sha256{};            // of the hashes of all batches
  std::vector<Rows> kept{};        // all batches, where they are kept
  RowOverlap training{};           // of these with the rows that the network was trained on
};

CollectedScores collect_scores(const BatchScorer& scorer, RowSource& source,
                               const CollectOptions& options, const Context& context);

// The scores of rows, without calibrating on them, in their order.
struct RowScores {
  int64_t sides = 1;
  std::vector<double> scores{};    // [N × sides], row by row
  std::vector<double> baseline{};  // [N], of baseline_of(score); empty for a plain score
};

// Ranks share the rows; the result is complete on rank 0. A score that is NaN is an Error that
// names the row. `cut` as in cut.h; empty: the score works on the network's input.
RowScores score_rows(const Graph& network, RowSource& source, const ScoreOptions& score,
                     const std::string& cut, const Context& context);

// calibrate() for callers in the library: the walk itself, and a calibration of which what only a
// file needs is left for later.
//
// Tested by tests/calibrate/calibrate_test.cc.

struct CalibrateInternals {
  // Scores stay in the order of the rows, there is a predictor, and few rows are kept instead of
  // hashed.
  bool finish_later = false;
  // The caller parted these rows from those that trained the network, so none is looked for.
  bool known_apart = false;
};

struct UnfinishedCalibration {
  std::shared_ptr<CalibrateResult> result = std::make_shared<CalibrateResult>();
  // Of the result's artifact; where it is unfinished.
  std::shared_ptr<const internal::PredictorCore> predictor{};

  // The scores of the rows, where it is unfinished.
  RowScores row_scores() const;

  // Sorts the scores where they lie, hashes rows and network, and measures what rounding does, for
  // exports (rounding.h). Once: it does nothing where it is done.
  void finish();

  bool finished = false;
  std::vector<Rows> kept{};            // all batches, or
  std::string sha256{};                // their hash and
  torch::Tensor first_rows{};          // the rows that rounding is measured on, at radii that
  std::vector<double> first_scores{};  // the scores of the first rows suggest
};

// Finished unless it is told otherwise, and on ranks beyond 0, where there is nothing to finish.
UnfinishedCalibration begin_calibration(const Graph& network, RowSource& source,
                                        const CalibrateSettings& settings, const Context& context,
                                        const CalibrateInternals& internals);

// The same where every option is known: what an update does with the options of a file. Of the
// settings, method, shifted and head_rows are not looked at.
UnfinishedCalibration begin_calibration(const CalibrationPlan& plan, RowSource& source,
                                        const CalibrateSettings& settings, const Context& context,
                                        const CalibrateInternals& internals);

}  // namespace fcp
