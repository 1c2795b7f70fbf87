// Intervals as nodes of a graph, one score after the other; export.h says how they are computed.
#pragma once

#include <string>
#include <vector>

#include "fcp/export/ranges.h"
#include "fcp/predictor/artifact.h"
#include "fcp/predictor/levels.h"

namespace fcp {

// The network's part from the feature on, and a feature, [1, …].
struct ExportHead {
  std::shared_ptr<const Network> network;
  torch::Tensor feature;
};

// Writes the ends of the intervals, shaped as the output, for each level.
std::vector<Ends> write_intervals(GraphBuilder& builder, const CalibrationArtifact& artifact,
                                  const ExportHead& head, const std::vector<Level>& levels);

// The output whose shape and type the intervals have.
TensorInfo interval_output(const CalibrationArtifact& artifact, const Network& head);

// The outputs that are the prediction: one, or two quantiles, between which it is the middle.
std::vector<std::string> center_names(const CalibrationArtifact& artifact, const Network& head);

}  // namespace fcp
