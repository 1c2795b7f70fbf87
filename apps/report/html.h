// The one-page report on an evaluation, for people, whatever the regions are.
//
// What it says, in this order: the headline numbers and whether they are what the guarantee lets
// one expect, the charts, the methods side by side, coverage by part, examples, what is promised
// and what is not, and where it all comes from. Each kind of region has its own file
// (interval_page.cc, label_page.cc, pixel_page.cc); what they share is in sections.h. The page
// carries the report's JSON (json.h), from which its charts are drawn (charts.js).
// Tested by tests/report/html_test.cc, label_html_test.cc and pixel_html_test.cc.
#pragma once

#include <string>

#include "fcp/evaluate/measures/evaluation_report.h"

namespace fcp {

// One self-contained HTML file, pictures included. Throws std::invalid_argument where the report
// has no method.
std::string report_html(const EvaluationReport& report);

}  // namespace fcp
