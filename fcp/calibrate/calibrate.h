// From a network and rows with known answers to a calibrated predictor. Rows are streamed: memory
// grows with their number only by their scores.
//
//   CalibrateSettings settings;
//   settings.method.cut = AutoCut{};
//   const CalibrateResult result = calibrate(network, rows, settings, context);
//   write_artifact(result.artifact, "calibrated.onnx");
//
// Tested by tests/pipeline/calibrate_test.cc, tests/cli/test_calibration.py.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fcp/calibration/artifact.h"
#include "fcp/calibration/method_request.h"
#include "fcp/calibration/tensor_predictor.h"
#include "fcp/data/rows.h"
#include "fcp/pipeline/choices.h"
#include "fcp/pipeline/context.h"
#include "fcp/pipeline/row_facts.h"
#include "fcp/pipeline/score_rows.h"

namespace fcp {

struct CalibrateSettings {
  std::string data_name{};  // of the rows, for messages
  MethodRequest method{};
  RowFacts facts{};  // of all rows: groups, or likelihood ratios
  // Rows of the network's training distribution that heads on features are fitted on; null: a share
  // of the calibration rows is, which is then left out.
  RowSource* head_rows = nullptr;
  bool allow_training_rows = false;  // only warn where the network was trained on these rows
  bool known_apart = false;      // it was not: the caller parted the rows, and none is looked for
  RowSource* shifted = nullptr;  // rows of the distribution that weighted calibration is for
  Level level = Level(0.1);      // for which lengths are compared where something is chosen
  std::vector<Level> levels{};   // split: whose radii are kept, ascending; empty: all scores
  // For a caller that goes on in memory: the result has a predictor, and what only a file needs is
  // left to finish_artifact (score_collector.h): the order of the scores, and with hash_later,
  // where one rank works without a checkpoint, the hashes.
  bool keep_predictor = false;
  bool hash_later = false;
  bool keep_row_scores = false;                     // in the result, in the order of the rows
  std::optional<std::string> checkpoint{};          // file to go on from and to keep batches in
  std::map<std::string, std::string> provenance{};  // of the caller: file names
};

struct CalibrateResult {
  CalibrationArtifact artifact;
  Choices choices{};
  CalibrationFindings findings{};
  RowScores row_scores{};                              // where settings.keep_row_scores
  std::vector<std::string> warnings{};                 // radii that are infinite
  std::shared_ptr<const TensorPredictor> predictor{};  // where settings.keep_predictor
  std::vector<Rows> unhashed{};                        // where settings.hash_later: all batches
};

// Calibrates on all rows but those that choices look at. Ranks share the rows, and all make the
// same choices; the result is complete on rank 0 and the same, bit by bit, for any number of ranks.
// The observer hears of the choices as soon as they are made.
CalibrateResult calibrate(const Graph& network, RowSource& source,
                          const CalibrateSettings& settings, const Context& context);

}  // namespace fcp
