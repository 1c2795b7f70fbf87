// Calibration on a stream of rows: memory grows with the number of rows only by their scores.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fcp/calibration/artifact.h"
#include "fcp/data/rows.h"
#include "fcp/pipeline/context.h"
#include "fcp/pipeline/row_facts.h"

namespace fcp {

struct CalibrateSettings {
  std::string data_name;  // of the rows, for messages
  ScoreOptions score;
  CalibrationOptions calibration;
  RowFacts facts;                   // of all rows: groups, or likelihood ratios
  RowSource* shifted = nullptr;     // rows of the distribution that weighted calibration is for
  std::string cut;                  // empty: the default one; "auto": chosen on a slice of the rows
  Level level = Level(0.1);         // for which lengths are compared where something is chosen
  double selection_share = 0.2;     // of the rows, for choices; they are left out of calibration
  bool choose_temperature = false;  // lac, aps, raps: on the slice
  bool choose_rank_term = false;    // raps, feature_margin: on the slice
  std::vector<Level> levels;        // split: whose radii are kept, ascending; empty: all scores
  std::string checkpoint;           // file to go on from and to keep batches in; empty: none
  std::map<std::string, std::string> provenance;  // of the caller: file names
};

// Calibrates on all rows but those that choices look at. What is chosen is told to the observer.
// Ranks share the rows, and all make the same choices; the result is complete on rank 0 and the
// same, bit by bit, for any number of ranks.
CalibrationArtifact calibrate_rows(const Graph& network, RowSource& source,
                                   const CalibrateSettings& settings, const Context& context);

}  // namespace fcp
