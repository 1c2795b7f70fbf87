// The settings of a calibrated network as JSON, which its artifact carries: score, cut, calibration
// and all their options, and a format number. docs/formats.md names the fields. Tested by
// tests/predictor/artifact_test.cc.
#pragma once

#include <string>

#include "fcp/predictor/artifact.h"

namespace fcp {

std::string settings_text(const CalibrationArtifact& artifact);

// Fills in everything but the network, the lists and the provenance. An Error, or one of nlohmann's
// JSON library, where the text is damaged or of another format.
void read_settings(const std::string& text, CalibrationArtifact& artifact);

}  // namespace fcp
