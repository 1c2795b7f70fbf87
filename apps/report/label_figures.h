// The charts of a report on label sets with the words around them: which chart is drawn from what,
// and how to read it. What the report has no data for is left out.
// Tested by tests/report/label_html_test.cc.
#pragma once

#include <vector>

#include "fcp/evaluate/measures/evaluation_report.h"

#include "apps/report/page.h"

namespace fcp {

// Sizes of the sets, coverage by size, coverage over α, scores.
std::vector<Figure> label_figures(const EvaluationReport& report);

// Coverage of the main method in its worst classes, and by group.
std::vector<Figure> class_figures(const EvaluationReport& report);

}  // namespace fcp
