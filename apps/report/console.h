// Reports on the terminal: of each method the headline numbers, then coverage by part; and where
// coverage is improbable under its law, that it is.
// Tested by tests/report/console_test.cc.
#pragma once

#include <iosfwd>

#include "fcp/evaluate/measures/evaluation_report.h"
#include "fcp/level.h"

namespace fcp {

struct PrintOptions {
  Level level = Level(0.1);  // coverage is set against 1 − α
  double confidence = 0.95;  // with which the evaluation was made
  size_t most_groups = 12;   // of more groups only the worst is shown
};

void print_evaluation(std::ostream& out, const IntervalEvaluation& evaluation,
                      const PrintOptions& options = {});

void print_evaluation(std::ostream& out, const SetEvaluation& evaluation,
                      const PrintOptions& options = {});

// Throws std::invalid_argument where the report has no method.
void print_report(std::ostream& out, const EvaluationReport& report);

}  // namespace fcp
