#include "fcp/calibration/method_request.h"

namespace fcp {

ScoreOptions requested_score(const MethodRequest& request) {
  ScoreOptions score = request.score;
  if (request.steps) score.steps = *request.steps;
  if (request.temperature) score.temperature = *request.temperature;
  if (request.rank_weight) score.rank_weight = *request.rank_weight;
  return score;
}

CalibrationOptions requested_calibration(const MethodRequest& request) {
  CalibrationOptions calibration = request.calibration;
  if (request.bandwidth) calibration.bandwidth = *request.bandwidth;
  calibration.paper = request.score.paper;
  calibration.seed = request.score.seed;
  return calibration;
}

OpenValues open_values(const MethodRequest& request) {
  const std::string& score = request.score.name;
  const bool softmax = score == "lac" || score == "aps" || score == "raps";
  const bool ranked = score == "raps" || score == "feature_margin";
  return {.steps = !request.steps && searches_surrogate(request.score),
          .temperature = !request.temperature && softmax,
          .rank_term = !request.rank_weight && ranked,
          .bandwidth = !request.bandwidth && request.calibration.name == "localized",
          .cut = std::holds_alternative<AutoCut>(request.cut)};
}

}  // namespace fcp
