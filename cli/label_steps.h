// Prediction and evaluation of label sets: what steps.h does for intervals.
#pragma once

#include <string>

#include "fcp/calibration/artifact.h"
#include "fcp/data/rows.h"
#include "fcp/report/label_report.h"

#include "cli/common.h"
#include "cli/row_facts.h"

namespace fcp {

// Writes the label set of each row: a CSV of prediction, size and labels (by name where the network
// carries names, joined by '|'), or a boolean .npy [rows, classes]. Returns the number of rows.
size_t predict_sets(const CalibrationArtifact& artifact, RowSource& source, size_t batch,
                    const Level& level, const RowFacts& facts, const std::string& out,
                    torch::Device device, const CommonOptions& common);

// Coverage, sizes and what the report shows, at one level. `data` says whether the rows are images,
// which the examples are then shown with. Ranks share the rows, as in steps.h.
LabelReport evaluate_sets(const CalibrationArtifact& artifact, RowSource& source,
                          const DataOptions& data, const Level& level, const RowFacts& facts,
                          torch::Device device, const CommonOptions& common);

// The evaluation of each method on stdout.
void print_methods(const LabelReport& report);

}  // namespace fcp
