// A log of rows with truths, in the order of time, replayed through a calibrated predictor and its
// monitor: what `fcp monitor` does, and what a server does live.
// Tested by tests/evaluate/replay_test.cc, tests/cli/test_monitor.py.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "fcp/data/rows.h"
#include "fcp/monitoring/adaptive_level.h"
#include "fcp/monitoring/monitor.h"
#include "fcp/predictor/artifact.h"
#include "fcp/predictor/context.h"
#include "fcp/predictor/open_data.h"

namespace fcp {

struct ReplayOptions {
  MonitorOptions monitor{};
  RowFacts facts{};
  std::vector<std::string> times{};     // of all rows; empty: none
  std::string period{};                 // year, month, day or hour of the times; empty: by count
  size_t every = 0;                     // rows of a period; 0: a twentieth of them, at least 50
  bool watch_inputs = true;             // for drift
  std::vector<std::string> watched{};   // columns, by name; empty: all
  RowSource* reference = nullptr;       // inputs from before the log; null: the log's own past
  std::optional<AdaptOptions> adapt{};  // none: the level stays
  size_t window = 0;                    // adapt: radii of the last so many scores; 0: of the file's
};

// An Error names a row that is out of order or has a NaN; and where the artifact keeps the scores
// of some levels alone, or the options do not fit the data.
MonitorReport replay(const CalibrationArtifact& artifact, RowSource& source,
                     const ReplayOptions& options, const Context& context);

// What a monitor needs to know of a calibrated predictor.
MonitoredCalibration monitored_calibration(const CalibrationArtifact& artifact);

// Which inputs of rows with these columns a monitor watches. An Error names a column that is not
// there.
Drift watched_inputs(size_t row_size, const std::vector<std::string>& columns,
                     const std::vector<std::string>& watched, uint64_t seed);

// Where truths tell the time or the group of a row: column `name` of all files of the data.
std::vector<std::string> read_times(const DataOptions& data, const std::string& column);

}  // namespace fcp
