// Calibrating a file that is calibrated already: on new rows its score, cut and options stay what
// they are, but for those that are asked for. Tested by tests/calibration/recalibration_test.cc.
#pragma once

#include <set>
#include <string>

#include "fcp/calibration/artifact.h"
#include "fcp/calibration/method_request.h"

namespace fcp {

// Whether the network carries a calibration.
bool is_calibrated(const Graph& network);

// `asked` with everything that is not among the names `told` as the artifact has it. Another score
// that is told brings its own defaults, and so does another calibration; the cut stays where the
// score works on features.
MethodRequest recalibration_request(const CalibrationArtifact& artifact, const MethodRequest& asked,
                                    const std::set<std::string>& told);

}  // namespace fcp
