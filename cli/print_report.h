// Reports on stdout.
#pragma once

#include <nlohmann/json.hpp>

#include "fcp/calibration/artifact.h"
#include "fcp/conformal/level.h"
#include "fcp/report/interval_report.h"
#include "fcp/report/label_report.h"

namespace fcp {

// The evaluation of each method, and where it is another one, the coverage of detection.
void print_methods(const IntervalReport& report);
void print_methods(const LabelReport& report);

// The radius, or one per side; null where it differs from row to row.
nlohmann::ordered_json radius_json(const CalibrationArtifact& artifact, const Level& level);

}  // namespace fcp
