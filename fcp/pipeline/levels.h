// What an artifact can tell about levels.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "fcp/calibration/artifact.h"
#include "fcp/conformal/level.h"

namespace fcp {

// The predictor of a file, which must be able to tell the radii of these levels.
CalibrationArtifact read_artifact_for(const std::string& path, std::span<const Level> levels);

// The artifact of a file, for p-values: an Error where it keeps the radii of some levels alone.
CalibrationArtifact read_artifact_for_p_values(const std::string& path, const Level& level);

// A line that says how many calibration rows a finite radius needs, where a radius is infinite.
std::optional<std::string> infinite_radius_warning(const CalibrationArtifact& artifact,
                                                   const Level& level);

}  // namespace fcp
