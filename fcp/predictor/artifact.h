// A calibrated network: the network itself, the method it was calibrated with, and the scores of
// the calibration rows, from which the radius for any level follows, with what grouped, localized
// or weighted calibration needs of them besides.
//
// It is kept as an ONNX file: the network unchanged, the scores as one more initializer, settings
// and provenance as metadata. Any ONNX runtime can still run it; nothing in it is executable.
// docs/formats.md describes the fields.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fcp/conformal/venn_abers.h"
#include "fcp/level.h"
#include "fcp/methods/calibrations/density_ratio.h"
#include "fcp/methods/method.h"
#include "fcp/nn/graph/graph.h"
#include "fcp/predictor/provenance.h"
#include "fcp/predictor/rounding.h"

namespace fcp {

struct CalibrationArtifact {
  Graph network;
  Method method;
  CalibrationScores rows;
  DensityRatio ratio;                // weighted: where the likelihood ratio was estimated
  std::vector<double> baseline;      // scores of the score's baseline on the same rows, ascending
  std::vector<VennAbers> chances{};  // calibrated probabilities (distribution.h); or empty
  Rounding rounding;                 // what export allows for
  size_t outputs = 0;  // intervals per row, 1 for labels; 0: an older file does not say
  std::map<std::string, std::string> provenance;  // what a reader of a report wants to know
  std::optional<ScoresTried> tried{};             // where `auto` chose the score

  // The radius of each side where it is the same for all rows, by split calibration.
  std::vector<double> radius(const Level& level) const;

  // The provenance with what was tried, as a line of text.
  std::map<std::string, std::string> facts() const;
};

// The ONNX form and back. Errors, among them that of a network that was never calibrated, name the
// file: artifact_from_graph by `name`.
Graph artifact_graph(const CalibrationArtifact& artifact);
CalibrationArtifact artifact_from_graph(Graph graph, const std::string& name);
CalibrationArtifact read_artifact(const std::string& path);

// Whether the network carries a calibration.
bool is_calibrated(const Graph& network);

// Atomic: an existing file is replaced whole or not at all.
void write_artifact(const CalibrationArtifact& artifact, const std::string& path);

}  // namespace fcp
