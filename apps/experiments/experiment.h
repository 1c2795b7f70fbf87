// What every experiment is: cells that do not depend on each other (a data set and a seed, say), a
// function that computes the rows of one cell, and one that makes a section of the page of them.
//
// The rows of a cell are a JSON array of flat objects, numbers and text only. They are all that is
// kept: tables, charts, CSV and JSON are made from them, in the order of the cells, so that the
// same seeds give the same files. `seconds` is the one number that may differ; it stays out of the
// CSV.
//
// To add an experiment: a file with a function that returns an Experiment, declared below
// and listed in experiment.cc. Tested by tests/experiments/experiment_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

#include "fcp/base/error.h"
#include "fcp/distributed/communicator.h"
#include "fcp/level.h"

#include "apps/report/results.h"

namespace fcp {

using Json = nlohmann::ordered_json;

// A data set that is not there: its cells are left out, the others run.
class MissingData : public Error {
 public:
  using Error::Error;
};

struct ExperimentOptions {
  std::string data_dir{};
  uint64_t seed = 0;  // of the first cell
  uint64_t seeds = 5;
  Level level = Level(0.1);
  std::vector<std::string> sets{};     // empty: those of the experiment
  std::vector<std::string> methods{};  // the same
  int64_t epochs = 0;                  // of training, at most; 0: those of the experiment
  uint64_t halvings = 20;              // classification: of the rows into calibration and test
  double rate = 0;                     // classification: step size of feature_sampled; 0: its own
  bool quick = false;                  // small built-in sets only, one seed
};

struct CellKey {
  std::string set;
  uint64_t seed = 0;
  std::string part{};  // a method, where the cells of a set are told apart by it

  std::string text() const;  // "bio-3", "cifar10-resnet20-lac": also the name of its file
};

// What tells the cells of an experiment apart.
enum class CellShape { kSet, kSetAndSeed, kSetAndMethod };

struct Experiment {
  std::string name;
  std::string title;
  std::string claim;  // of the paper
  std::vector<std::string> sets;
  std::vector<std::string>
      quick_sets{};                    // that need no files; empty: there is nothing quick to run
  std::vector<std::string> methods{};  // in the order of the tables
  CellShape shape = CellShape::kSetAndSeed;

  // The rows of one cell. MissingData where its set is not there.
  std::function<Json(const CellKey&, const ExperimentOptions&)> run{};

  // Fills in setup, tables and figures from the rows of all cells.
  std::function<void(const Json& rows, const ExperimentOptions&, ResultSection&)> present{};

  // What the full run says, five seeds on the paper's sets; left out of any other run.
  std::vector<std::string> readings{};
};

// The sets and methods that will be run: those asked for, or all; the quick ones where that is
// asked for.
std::vector<std::string> sets_of(const Experiment& experiment, const ExperimentOptions& options);
std::vector<std::string> methods_of(const Experiment& experiment, const ExperimentOptions& options);

std::vector<CellKey> cells_of(const Experiment& experiment, const ExperimentOptions& options);

// The section of one experiment: its words, and what `present` makes of the rows.
ResultSection section_of(const Experiment& experiment, const ExperimentOptions& options,
                         const Json& rows);

// All experiments, in the order of the page.

const std::vector<Experiment>& experiments();

// Nothing where there is none of this name.
const Experiment* find_experiment(const std::string& name,
                                  const std::vector<Experiment>& among = experiments());

// The experiment of this name, or with "all" every one that the options leave something to do.
// Sets or methods that it does not have are an OptionError.
std::vector<const Experiment*> choose_experiments(const std::string& name,
                                                  const ExperimentOptions& options,
                                                  const std::vector<Experiment>& among);

// Each in the file of its name.
Experiment worked_example();
Experiment regression_experiment();
Experiment cqr_experiment();
Experiment classification_experiment();
Experiment classification_cuts();
Experiment coverage_levels();
Experiment cubic_conditions();
Experiment untrained_networks();
Experiment cut_ablation();
Experiment score_distribution();
Experiment zero_quantile();
Experiment length_variance();
Experiment length_convergence();

// Runs cells side by side, one per thread, and keeps each as a file as soon as it is done.
//
// A cell is computed by one thread of libtorch, so that its bits do not depend on how many run at
// once. OUT/cells/EXPERIMENT/CELL.json holds its rows with the options they were made by; with
// `resume` a cell whose file has the same options is read, not run. A cell whose data are missing
// is left out with the reason, and not kept: once the data are there it runs.
//
// Which cells are run is the caller's choice: several processes that share OUT may each take a part
// of them and read the others' files afterwards.
// Tested by tests/experiments/experiment_test.cc.

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

// The cells of experiments shared among ranks: every R-th cell is this rank's.

// The results of all, in the order of the tasks, on rank 0; nothing on the others.
std::vector<CellResult> share_cells(const std::vector<CellTask>& tasks, const RunOptions& run,
                                    Communicator& ranks);

// The results of experiments as files: OUT/NAME.csv and OUT/NAME.json with all rows, and one page,
// OUT/index.html, with its text again as OUT/results.md.
// Tested by tests/experiments/experiment_test.cc and tests/cli/test_reproduce.py.

struct ExperimentResult {
  const Experiment* experiment = nullptr;
  Json rows = Json::array();
  size_t cells = 0;
  double seconds = 0;                 // of all cells together
  std::vector<std::string> left_out;  // "facebook2 is left out: …", once a set
};

// The results of the cells, experiment by experiment, in their order.
std::vector<ExperimentResult> gather_results(std::span<const CellTask> tasks,
                                             std::span<const CellResult> results);

ResultPage page_of(std::span<const ExperimentResult> results, const ExperimentOptions& options);

// Writes all files; each appears whole or not at all.
void publish(const std::string& folder, std::span<const ExperimentResult> results,
             const ResultPage& page);

}  // namespace fcp
