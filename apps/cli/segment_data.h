// The verbs of `fcp segment` that make something to work on: generated scenes, and a small network
// trained on them or on other labelled images. Each is declared on the parent subcommand.
#pragma once

#include <CLI/CLI.hpp>

namespace fcp::cli {

void add_segment_scenes(CLI::App& segment);
void add_segment_train(CLI::App& segment);

}  // namespace fcp::cli
