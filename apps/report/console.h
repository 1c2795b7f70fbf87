// Reports on the terminal: of each method the headline numbers, then coverage by part; and where
// coverage is improbable under its law, that it is.
// Tested by tests/report/console_test.cc.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

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

// ---- images -----------------------------------------------------------------------------------

// Of a score that obeys the law, `coverage` is what is guaranteed: the rate of images with at least
// the share of pixels in that was asked for. Of the surrogate it is only what happens, and what is
// guaranteed is `detection`, the rate of images whose score is within the radius: that the two
// differ must be seen, so they stand side by side. Tested by tests/report/pixel_html_test.cc.

// For the terminal: what was promised, and the table.
std::string pixel_text(const EvaluationReport& report);

// A table with a row for each method: headers and cells as text.
struct PixelTable {
  std::vector<std::string> headers;
  std::vector<std::vector<std::string>> rows;
};
PixelTable pixel_table(const EvaluationReport& report);

// What is promised for the share of pixels, in one sentence.
std::string pixel_promise(const EvaluationReport& report);

}  // namespace fcp
