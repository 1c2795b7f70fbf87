// What the test rows of a table tell of a predictor that was made from its other rows: coverage,
// errors, which columns it depends on, and warnings about the table itself.
//
// The importance of columns (fcp/evaluate/explain.h) is that of 50 to 500 test rows, evenly spread,
// one shuffle each: about 20,000 predictions whatever the table, a twentieth of them where a score
// searches. Of more than a thousand columns there is none.
//
// Tested by tests/fit/fit_test.cc and tests/cli/test_fit.py.
#pragma once

#include "fcp/evaluate/measures/evaluation_report.h"
#include "fcp/fit/train.h"
#include "fcp/predictor/artifact.h"

namespace fcp {

EvaluationReport test_report(const MadeFrom& from, const CalibrationArtifact& artifact,
                             const FitRequest& options, const DataOptions& data,
                             const Context& context);

}  // namespace fcp
