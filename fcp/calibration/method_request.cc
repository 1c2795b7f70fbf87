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

}  // namespace fcp
