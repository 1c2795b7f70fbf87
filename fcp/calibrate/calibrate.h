// From a network and rows with known answers to a calibrated predictor. Rows are streamed: memory
// grows with their number only by their scores.
//
//   CalibrateSettings settings;
//   settings.method.cut = AutoCut{};
//   const CalibrateResult result = calibrate(network, rows, settings, context);
//   write_artifact(result.artifact, "calibrated.onnx");
//
// Tested by tests/calibrate/calibrate_test.cc, tests/cli/test_calibration.py.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fcp/calibrate/choices.h"
#include "fcp/data/rows.h"
#include "fcp/methods/options.h"
#include "fcp/predictor/artifact.h"
#include "fcp/predictor/context.h"
#include "fcp/predictor/open_data.h"

namespace fcp {

struct CalibrateSettings {
  std::string data_name{};  // of the rows, for messages
  MethodRequest method{};
  RowFacts facts{};  // of all rows: groups, or likelihood ratios
  // Of all rows: those of one number stay together when rows are held out for choices and heads,
  // and when choices halve them. Empty: each row is by itself.
  std::vector<int64_t> keep_together{};
  // Rows of the network's training distribution that heads on features are fitted on; null: a share
  // of the calibration rows is, which is then left out.
  RowSource* head_rows = nullptr;
  bool allow_training_rows = false;  // only warn where the network was trained on these rows
  RowSource* shifted = nullptr;      // rows of the distribution that weighted calibration is for
  Level level = Level(0.1);          // for which lengths are compared where something is chosen
  std::vector<Level> levels{};       // split: whose radii are kept, ascending; empty: all scores
  std::optional<std::string> checkpoint{};          // file to go on from and to keep batches in
  std::map<std::string, std::string> provenance{};  // of the caller: file names
};

struct CalibrateResult {
  CalibrationArtifact artifact;
  Choices choices{};
  CalibrationFindings findings{};
  std::vector<std::string> warnings{};  // radii that are infinite
};

// Calibrates on all rows but those that choices look at. Ranks share the rows, and all make the
// same choices; the result is complete on rank 0 and the same, bit by bit, for any number of ranks.
// The observer hears of the choices as soon as they are made.
CalibrateResult calibrate(const Graph& network, RowSource& source,
                          const CalibrateSettings& settings, const Context& context);

}  // namespace fcp
