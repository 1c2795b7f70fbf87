#include "fcp/predictor/levels.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/base/text_table.h"
#include "fcp/conformal/quantile.h"
#include "fcp/methods/calibrations/grouped.h"
#include "fcp/methods/calibrations/kept_levels.h"

namespace fcp {
namespace {

std::optional<std::string> infinite_radius_warning(const CalibrationArtifact& artifact,
                                                   const Level& level,
                                                   std::span<const double> radius) {
  if (artifact.method.calibration.traits().by_group) {
    return small_groups_warning(artifact.rows, artifact.method.calibration.paper, level);
  }
  const size_t n = artifact.rows.count();
  if (artifact.method.calibration.traits().made_by_fit && conformal_rank(level, n) > n) {
    return concat("alpha ", level.text(), " needs at least ", least_calibration_rows(level),
                  " calibration rows, this predictor has ", n, "; every interval is infinite");
  }
  const auto finite = [](double value) { return std::isfinite(value); };
  if (std::all_of(radius.begin(), radius.end(), finite)) return std::nullopt;
  const Level side = side_level(level, artifact.rows.sharing(), artifact.method.calibration.paper);
  if (conformal_rank(side, n) <= n) {
    return "the radius is infinite, because too many calibration scores are: every interval is "
           "infinite";
  }
  return concat("the radius is infinite: alpha ", level.text(), " needs at least ",
                least_calibration_rows(side), " calibration rows, this predictor has ", n,
                "; every interval is infinite");
}

// Of the scores that ask for bands over balls, in which directions may count differently; other
// radii are lengths or shares.
std::optional<std::string> large_radius_warning(const CalibrationArtifact& artifact,
                                                const Level& level, std::span<const double> sides) {
  if (artifact.method.score.find(field::scale) == nullptr) return std::nullopt;
  for (const double radius : sides) {
    if (radius <= kLargestBall || std::isinf(radius)) continue;
    return concat("at alpha ", level.text(), " the radius is ", format_number(radius),
                  ", too large for single precision: numbers overflow within such a ball, and ",
                  "exported intervals are infinite");
  }
  return std::nullopt;
}

}  // namespace

CalibrationArtifact read_artifact_for(const std::string& path, std::span<const Level> levels) {
  CalibrationArtifact artifact = read_artifact(path);
  for (const Level& level : levels) {
    const auto missing = missing_level(artifact.rows.levels, level);
    if (missing) fail(path, ": ", *missing);
  }
  return artifact;
}

CalibrationArtifact read_artifact_for_p_values(const std::string& path, const Level& level) {
  CalibrationArtifact artifact = read_artifact_for(path, {&level, 1});
  if (const auto missing = missing_scores(artifact.rows.levels)) {
    fail(path, ": ", *missing, "; a p-value needs all scores");
  }
  return artifact;
}

std::optional<std::string> lax_level_warning(const Level& level) {
  if (level.value() <= 0.5) return std::nullopt;
  return concat("at alpha ", level.text(), " most regions may miss the truth; did you mean a ",
                "confidence of ", level.text(), "?");
}

std::vector<std::string> level_warnings(const CalibrationArtifact& artifact, const Level& level) {
  return level_warnings(artifact, level, artifact.radius(level));
}

std::vector<std::string> level_warnings(const CalibrationArtifact& artifact, const Level& level,
                                        std::span<const double> radius) {
  std::vector<std::string> warnings;
  for (std::optional<std::string> warning :
       {lax_level_warning(level), infinite_radius_warning(artifact, level, radius),
        large_radius_warning(artifact, level, radius)}) {
    if (warning) warnings.push_back(std::move(*warning));
  }
  return warnings;
}

}  // namespace fcp
