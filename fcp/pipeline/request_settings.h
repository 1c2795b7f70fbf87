// A request for a method as settings of a calibration.
#pragma once

#include "fcp/calibration/options.h"
#include "fcp/pipeline/calibrate.h"

namespace fcp {

// Fills in score, calibration, cut and what is to be chosen; an OptionError (check_options) where
// the request contradicts itself.
void apply_request(const MethodRequest& request, CalibrateSettings& settings);

}  // namespace fcp
