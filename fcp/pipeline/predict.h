// Regions of a calibrated predictor for a stream of rows, written to a file.
#pragma once

#include <string>

#include "fcp/calibration/artifact.h"
#include "fcp/data/rows.h"
#include "fcp/pipeline/context.h"
#include "fcp/pipeline/row_facts.h"

namespace fcp {

// Writes the intervals of all rows to a CSV or .npy file; returns the number of rows.
size_t predict_rows(const CalibrationArtifact& artifact, RowSource& source, const Level& level,
                    const RowFacts& facts, const std::string& out, const Context& context);

// Writes the label set of each row: a CSV of prediction, size and labels (by name where the network
// carries names, joined by '|'), or a boolean .npy [rows, classes]. Returns the number of rows.
size_t predict_sets(const CalibrationArtifact& artifact, RowSource& source, const Level& level,
                    const RowFacts& facts, const std::string& out, const Context& context);

}  // namespace fcp
