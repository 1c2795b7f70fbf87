// Evaluation of a calibrated predictor on a stream of rows with known answers.
#pragma once

#include "fcp/calibration/artifact.h"
#include "fcp/data/rows.h"
#include "fcp/pipeline/context.h"
#include "fcp/pipeline/row_facts.h"
#include "fcp/report/interval_report.h"

namespace fcp {

// Coverage, lengths and what the report draws, at one level. Ranks share the rows; the report is on
// rank 0, and the same for any number of ranks.
IntervalReport evaluate_rows(const CalibrationArtifact& artifact, RowSource& source,
                             const Level& level, const RowFacts& facts, const Context& context);

}  // namespace fcp
