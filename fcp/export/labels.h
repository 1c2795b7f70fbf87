// Label sets as nodes of a graph, one score after the other; export.h says how they are computed.
#pragma once

#include <string>
#include <vector>

#include "fcp/export/intervals.h"
#include "fcp/predictor/artifact.h"

namespace fcp {

// feature_margin compares all pairs of labels of a row at once: C² numbers of memory a row.
constexpr int64_t kMostMarginClasses = 2048;

struct LabelSets {
  int64_t classes = 0;
  std::vector<std::string> members;  // [N, classes] bool, one per level
  // Calibrated probabilities and their pair, p0 and p1, [N, classes] float; empty: there are none.
  std::vector<std::string> chances{};
};

LabelSets write_label_sets(GraphBuilder& builder, const CalibrationArtifact& artifact,
                           const ExportHead& head, const std::vector<Level>& levels);

}  // namespace fcp
