// The charts of a report on prediction intervals with the words around them: which chart is drawn
// from what, and how to read it. What the report has no data for is left out.
// Tested by tests/report/html_test.cc.
#pragma once

#include <vector>

#include "fcp/evaluate/measures/evaluation_report.h"

#include "apps/report/page.h"

namespace fcp {

// A sample of rows; none where the report has no examples.
std::vector<Figure> sample_figure(const EvaluationReport& report);

// Coverage over α, lengths, scores.
std::vector<Figure> interval_figures(const EvaluationReport& report);

// Coverage of the main method by thirds of the response, by length, and by group.
std::vector<Figure> part_figures(const EvaluationReport& report);

}  // namespace fcp
