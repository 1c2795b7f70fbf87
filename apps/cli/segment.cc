// fcp segment: bands and sets for every pixel of an image.
#include <span>

#include "fcp/predictor/levels.h"

#include "apps/cli/common.h"
#include "apps/cli/segment_data.h"
#include "apps/cli/segment_verbs.h"
#include "apps/cli/verbs.h"

namespace fcp::cli {

void add_segment_data(CLI::App& verb, SegmentDataOptions& options) {
  verb.add_option("--fold", options.folds, "Folds of the data to use, where it has some")
      ->delimiter(',')
      ->allow_extra_args(false);
}

CalibrationArtifact read_segmenter(const std::string& path, const Level& level) {
  CalibrationArtifact artifact = read_artifact_for(path, std::span(&level, 1));
  if (!artifact.method.calibration.traits().one_radius) {
    fail(path, ": is of ", artifact.method.calibration.name(),
         " calibration; evaluate and predict of images take split calibration");
  }
  return artifact;
}

void add_segment(CLI::App& app) {
  CLI::App* segment =
      app.add_subcommand("segment", "Images: a band or a set of labels for every pixel");
  segment->require_subcommand(1);
  add_segment_demo(*segment);
  add_segment_scenes(*segment);
  add_segment_train(*segment);
  add_segment_calibrate(*segment);
  add_segment_predict(*segment);
  add_segment_evaluate(*segment);
}

}  // namespace fcp::cli
