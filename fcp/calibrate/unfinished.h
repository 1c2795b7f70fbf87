// calibrate() for callers in the library: the walk itself, and a calibration of which what only a
// file needs is left for later.
//
// Tested by tests/calibrate/calibrate_test.cc.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/calibrate/calibrate.h"
#include "fcp/calibrate/choose.h"
#include "fcp/calibrate/collect_scores.h"
#include "fcp/predictor/predictor_core.h"

namespace fcp {

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
