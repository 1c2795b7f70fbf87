// What every experiment is: cells that do not depend on each other (a data set and a seed, say), a
// function that computes the rows of one cell, and one that makes a section of the page of them.
//
// The rows of a cell are a JSON array of flat objects, numbers and text only. They are all that is
// kept: tables, charts, CSV and JSON are made from them, in the order of the cells, so that the
// same seeds give the same files. `seconds` is the one number that may differ; it stays out of the
// CSV.
//
// To add an experiment: a file with a function that returns an Experiment, declared in registry.h
// and listed in registry.cc. Tested by tests/experiments/cell_runner_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "fcp/base/error.h"
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

}  // namespace fcp
