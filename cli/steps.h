// The steps of the road from data to a report, as the verbs and the demo share them. Each streams
// its rows: memory grows with the number of rows only by their scores.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "fcp/calibration/artifact.h"
#include "fcp/data/rows.h"
#include "fcp/report/interval_report.h"
#include "fcp/training/train.h"

#include "cli/common.h"
#include "cli/row_facts.h"

namespace fcp {

// Trains on all rows; the graph carries how its columns are read, and the names of its targets.
TrainResult train_rows(RowSource& source, const TrainOptions& options, const CommonOptions& common);

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

// Calibrates on all rows but those that choices look at. What is chosen is told on stderr. Ranks
// share the rows, and all make the same choices; the result is complete on rank 0 and the same,
// bit by bit, for any number of ranks.
CalibrationArtifact calibrate_rows(const Graph& network, RowSource& source, size_t batch,
                                   const CalibrateSettings& settings, torch::Device device,
                                   const CommonOptions& common);

// Coverage, lengths and what the report draws, at one level. Ranks share the rows; the report is on
// rank 0, and the same for any number of ranks.
IntervalReport evaluate_rows(const CalibrationArtifact& artifact, RowSource& source, size_t batch,
                             const Level& level, const RowFacts& facts, torch::Device device,
                             const CommonOptions& common);

// The evaluation of each method on stdout, and where it is another one, the coverage of detection.
void print_methods(const IntervalReport& report);

// Writes the intervals of all rows to a CSV or .npy file; returns the number of rows.
size_t predict_rows(const CalibrationArtifact& artifact, RowSource& source, size_t batch,
                    const Level& level, const RowFacts& facts, const std::string& out,
                    torch::Device device, const CommonOptions& common);

// The radius, or one a side; null where it differs from row to row.
nlohmann::ordered_json radius_json(const CalibrationArtifact& artifact, const Level& level);

// The predictor of a file, which must be able to tell the radii of these levels.
CalibrationArtifact read_artifact_for(const std::string& path, std::span<const Level> levels);

// A line that says how many calibration rows a finite radius needs, where a radius is infinite.
std::optional<std::string> infinite_radius_warning(const CalibrationArtifact& artifact,
                                                   const Level& level);

}  // namespace fcp
