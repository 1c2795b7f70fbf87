// The verbs under `fcp segment`, each declared on the parent subcommand.
#pragma once

#include <CLI/CLI.hpp>

namespace fcp {

void add_segment_calibrate(CLI::App& segment);
void add_segment_evaluate(CLI::App& segment);

}  // namespace fcp
