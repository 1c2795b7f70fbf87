// The results of experiments as files: OUT/NAME.csv and OUT/NAME.json with all rows, and one page,
// OUT/index.html, with its text again as OUT/results.md.
// Tested by tests/experiments/cell_runner_test.cc and tests/cli/test_reproduce.py.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "apps/experiments/cell_runner.h"
#include "apps/experiments/experiment.h"
#include "apps/report/results.h"

namespace fcp {

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
