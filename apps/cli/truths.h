// Rows with truths for update, monitor and evaluate: from files, or from the state of a server.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "fcp/predictor/artifact.h"
#include "fcp/predictor/context.h"
#include "fcp/predictor/open_data.h"

#include "apps/cli/option_flags.h"

namespace fcp::cli {

struct Truths {
  std::unique_ptr<RowSource> rows;
  RowFacts facts;
  std::vector<std::string> times;  // of all rows; empty: none
  std::string name;                // for messages and titles
};

// --data and --state, of which one is given.
void add_truths(CLI::App& verb, DataFlags& flags, const std::string& help);

// Those of --state are the truths of the predictions that the file at `model` made, in the order in
// which they came, with their times. `time`: the column of --time, for files; "": none.
Truths open_truths(const DataFlags& flags, const DataOptions& data, const FactOptions& facts,
                   const std::string& time, const std::string& model,
                   const CalibrationArtifact& artifact, const Context& context);

// "2026-11-16T05:27:03.250", in UTC.
std::string time_text(double seconds);

}  // namespace fcp::cli
