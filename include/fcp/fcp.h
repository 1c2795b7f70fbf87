// Feature conformal prediction: prediction intervals and sets with a coverage guarantee for a
// trained network.
//
//   #include <fcp/fcp.h>
//
//   const auto p = fcp::calibrate("model.onnx", "cal.csv", "minutes");
//   p.save("calibrated.onnx");
//   const std::vector<float> x = {3.2f, 17, 4};
//   const fcp::Answer a = p.predict(p.schema().encode(x), {fcp::Level(0.1)});
//   use(a.point(0), a.interval(0).lower, a.interval(0).upper);
//
// The only header that most programs include; it brings no libtorch. Tensors: <fcp/tensors.h>; from
// C: <fcp/c_api.h>.
#pragma once

#include "fcp/calibrate.h"
#include "fcp/deprecated.h"
#include "fcp/discoveries.h"
#include "fcp/distribution.h"
#include "fcp/error.h"
#include "fcp/evaluate.h"
#include "fcp/export.h"
#include "fcp/fit.h"
#include "fcp/interval.h"
#include "fcp/level.h"
#include "fcp/outliers.h"
#include "fcp/predictor.h"
#include "fcp/probabilities.h"
#include "fcp/version.h"
