#include "fcp/pipeline/request_settings.h"

namespace fcp {

void apply_request(const MethodRequest& request, CalibrateSettings& settings) {
  check_options(request);
  settings.score = requested_score(request);
  settings.calibration = requested_calibration(request);
  settings.selection_share = request.selection;
  const OpenValues open = open_values(request);
  settings.choose_temperature = open.temperature;
  settings.choose_rank_term = open.rank_term;
  const auto* named = std::get_if<std::string>(&request.cut);
  settings.cut = open.cut ? "auto" : named == nullptr ? "" : *named;
}

}  // namespace fcp
