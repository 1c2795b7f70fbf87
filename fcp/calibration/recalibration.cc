#include "fcp/calibration/recalibration.h"

#include "fcp/calibration/options.h"

namespace fcp {

bool is_calibrated(const Graph& network) { return network.metadata.contains("fcp.calibration"); }

MethodRequest recalibration_request(const CalibrationArtifact& artifact, const MethodRequest& asked,
                                    const std::set<std::string>& told) {
  MethodRequest kept = resolved_request(artifact.score, artifact.calibration, artifact.cut);
  // Other rows than those that train a network cannot calibrate it by cross-fitting.
  if (kept.calibration.name == kCrossScore) kept.calibration = {};
  const bool other_score = told.contains("score") && asked.score.name != kept.score.name;
  const bool other_calibration =
      told.contains("calibration") && asked.calibration.name != kept.calibration.name;
  MethodRequest request;
  for (const Option& option : option_table()) {
    if (option.storage == OptionStorage::kNone) continue;
    const bool dropped =
        option.name != "cut" && (option.of_calibration ? other_calibration : other_score);
    if (!dropped && applies(option, kept)) option.put(request, option.get(kept));
  }
  for (const Option& option : option_table()) {
    if (told.contains(option.name)) option.put(request, option.get(asked));
  }
  const bool at_a_cut = request.score.name != kAutoScore && uses_features(request.score.name);
  if (!at_a_cut && !told.contains("cut")) request.cut = DefaultCut{};
  // Kept beside the table; it fits the features of this cut alone.
  if (!other_score && !told.contains("cut")) request.score.scale = kept.score.scale;
  request.score.seed = asked.score.seed;
  request.score.bound.memory = asked.score.bound.memory;
  request.selection = asked.selection;
  request.objective = asked.objective;
  return request;
}

}  // namespace fcp
