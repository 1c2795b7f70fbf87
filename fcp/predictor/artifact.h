// A calibrated network: the network itself, which score it was calibrated with and where it is cut,
// and the scores of the calibration rows, from which the radius for any level follows, with what
// grouped, localized or weighted calibration needs of them besides.
//
// It is kept as an ONNX file: the network unchanged, the scores as one more initializer, settings
// and provenance as metadata. Any ONNX runtime can still run it; nothing in it is executable.
// docs/formats.md describes the fields.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fcp/calibration/calibration.h"
#include "fcp/calibration/density_ratio.h"
#include "fcp/calibration/rounding.h"
#include "fcp/conformal/level.h"
#include "fcp/network/graph.h"
#include "fcp/scores/score.h"

namespace fcp {

struct CalibrationArtifact {
  Graph network;
  ScoreOptions score;
  CalibrationOptions calibration;
  std::string cut;  // tensor that is the feature; empty: the network's input
  CalibrationScores rows;
  DensityRatio ratio;            // weighted: where the likelihood ratio was estimated
  std::vector<double> baseline;  // scores of baseline_of(score) on the same rows, ascending
  Rounding rounding;             // what export allows for
  std::map<std::string, std::string> provenance;  // what a reader of a report wants to know

  // The radius of each side where it is the same for all rows, by split calibration.
  std::vector<double> radius(const Level& level) const;
};

// The ONNX form and back. Errors, among them that of a network that was never calibrated, name the
// file: artifact_from_graph by `name`.
Graph artifact_graph(const CalibrationArtifact& artifact);
CalibrationArtifact artifact_from_graph(Graph artefact, const std::string& name);
CalibrationArtifact read_artifact(const std::string& path);

// Atomic: an existing file is replaced whole or not at all.
void write_artifact(const CalibrationArtifact& artifact, const std::string& path);

}  // namespace fcp
