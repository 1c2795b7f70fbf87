// The public fcp/export.h.
#include "fcp/export/export.h"

#include "fcp/base/error.h"
#include "fcp/methods/calibrations/kept_levels.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/predictor/predictor_core.h"

namespace fcp {

void export_onnx(const Predictor& predictor, const std::string& path,
                 const ExportOptions& options) {
  const CalibrationArtifact& artifact = internal::Access::core(predictor).artifact();
  for (const Level& level : options.levels) {
    if (const auto missing = missing_level(artifact.rows.levels, level)) {
      fail("the calibration ", *missing);
    }
  }
  write_onnx(export_artifact(artifact, options), path);
}

}  // namespace fcp
