// Evaluations on the terminal: the headline numbers, then coverage by part.
// Tested by tests/report/console_test.cc.
#pragma once

#include <iosfwd>

#include "fcp/conformal/level.h"
#include "fcp/evaluation/interval_evaluation.h"
#include "fcp/evaluation/set_evaluation.h"

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

}  // namespace fcp
