// Runs cells side by side, one per thread, and keeps each as a file as soon as it is done.
//
// A cell is computed by one thread of libtorch, so that its bits do not depend on how many run at
// once. OUT/cells/EXPERIMENT/CELL.json holds its rows with the options they were made by; with
// `resume` a cell whose file has the same options is read, not run. A cell whose data are missing
// is left out with the reason, and not kept: once the data are there it runs.
//
// Which cells are run is the caller's choice: several processes that share OUT may each take a part
// of them and read the others' files afterwards.
// Tested by tests/experiments/cell_runner_test.cc.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "apps/experiments/experiment.h"

namespace fcp {

struct CellTask {
  const Experiment* experiment = nullptr;
  CellKey key;
};

struct CellResult {
  Json rows = Json::array();
  double seconds = 0;
  std::string left_out;  // why there are no rows; empty: there are
};

struct RunOptions {
  std::string folder;  // OUT
  bool resume = false;
  int threads = 1;
  ExperimentOptions experiment;
  // After each cell, from one thread at a time.
  std::function<void(const CellTask&, const CellResult&)> observe{};
};

// The cells of all experiments, in the order of the tables.
std::vector<CellTask> tasks_of(std::span<const Experiment* const> experiments,
                               const ExperimentOptions& options);

// One result a task, in their order. What goes wrong in a cell, but for MissingData, ends the run
// when the cells under way have ended; cells that were done before are kept.
std::vector<CellResult> run_cells(std::span<const CellTask> tasks, const RunOptions& options);

// The cell as kept on disk; none where there is no file or it was made by other options.
std::optional<CellResult> read_cell(const CellTask& task, const RunOptions& options);

}  // namespace fcp
