// Regions whose level follows the truths: from the scores of rows in order to a radius for each.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include <torch/types.h>

#include "fcp/calibration/artifact.h"
#include "fcp/calibration/tensor_predictor.h"
#include "fcp/monitoring/adaptive_level.h"
#include "fcp/monitoring/monitor.h"
#include "fcp/monitoring/score_window.h"

namespace fcp {

class ReplayAdapter {
 public:
  // window: radii are those of the last so many scores; 0: of the artifact's. A window needs split
  // calibration of a score with one side. Artifact and predictor must outlive the adapter.
  ReplayAdapter(const CalibrationArtifact& artifact, const TensorPredictor& predictor,
                const Level& level, const AdaptOptions& options, size_t window, uint64_t seed);

  // The rows in order, each judged before its truth is learned from.
  std::vector<AdaptedRow> take(const TestInputs& rows, const Conformity& judged);

 private:
  torch::Tensor radii_at(const TestInputs& rows, int64_t row, double level) const;

  const CalibrationArtifact* artifact_;
  const TensorPredictor* predictor_;
  AdaptiveLevel level_;
  std::optional<ScoreWindow> window_;
};

// The length of each row's intervals (their mean over outputs, of unions the sum of their parts),
// or the number of labels in its set.
std::vector<double> region_sizes(const Regions& regions);

}  // namespace fcp
