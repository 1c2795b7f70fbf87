// What an artifact can tell about levels.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fcp/level.h"
#include "fcp/predictor/artifact.h"

namespace fcp {

// Radii beyond it may overflow single precision on their way: exported intervals are then infinite,
// which holds what fcp itself would say.
constexpr double kLargestBall = 0x1p96;

// The predictor of a file, which must be able to tell the radii of these levels.
CalibrationArtifact read_artifact_for(const std::string& path, std::span<const Level> levels);

// The artifact of a file, for p-values: an Error where it keeps the radii of some levels alone.
CalibrationArtifact read_artifact_for_p_values(const std::string& path, const Level& level);

// What a user of regions at this level should know, a line each: most regions may miss the truth;
// the radius is infinite, and how many calibration rows a finite one needs; it is so large that
// numbers overflow within its ball.
std::vector<std::string> level_warnings(const CalibrationArtifact& artifact, const Level& level);
// The same where artifact.radius(level) is known.
std::vector<std::string> level_warnings(const CalibrationArtifact& artifact, const Level& level,
                                        std::span<const double> radius);

// The first of them, which needs no artifact.
std::optional<std::string> lax_level_warning(const Level& level);

}  // namespace fcp
