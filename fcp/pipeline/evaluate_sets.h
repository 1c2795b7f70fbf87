// Evaluation of label sets: what evaluate.h does for intervals.
#pragma once

#include <string>

#include "fcp/calibration/artifact.h"
#include "fcp/data/rows.h"
#include "fcp/pipeline/context.h"
#include "fcp/pipeline/open_data.h"
#include "fcp/pipeline/row_facts.h"
#include "fcp/report/label_report.h"

namespace fcp {

// Coverage, sizes and what the report shows, at one level. `data` says whether the rows are images,
// which the examples are then shown with. Ranks share the rows, as in evaluate.h.
LabelReport evaluate_sets(const CalibrationArtifact& artifact, RowSource& source,
                          const DataOptions& data, const Level& level, const RowFacts& facts,
                          const Context& context);

}  // namespace fcp
