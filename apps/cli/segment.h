// The verbs under `fcp segment`, each declared on the parent subcommand.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "fcp/data/images/segmentation.h"
#include "fcp/level.h"
#include "fcp/predictor/artifact.h"

namespace fcp::cli {

// --fold, which all of them but `demo` take.
void add_segment_data(CLI::App& verb, SegmentDataOptions& options);

// A calibrated segmenter that can tell the radius of a level; an Error where it is not of split
// calibration.
CalibrationArtifact read_segmenter(const std::string& path, const Level& level);

void add_segment_demo(CLI::App& segment);
void add_segment_calibrate(CLI::App& segment);
void add_segment_predict(CLI::App& segment);
void add_segment_evaluate(CLI::App& segment);

}  // namespace fcp::cli
