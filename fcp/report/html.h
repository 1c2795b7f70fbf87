// The one-page report on prediction intervals, for people.
//
// What it says, in this order: the headline numbers and whether they are what the guarantee lets
// one expect, the charts, the methods side by side, coverage by part, what is promised and what is
// not, and where it all comes from. What it shares with the report on label sets (label_html.h)
// stands in sections.h and figures.h. Tested by tests/report/html_test.cc.
#pragma once

#include <string>

#include "fcp/report/interval_report.h"

namespace fcp {

// One self-contained HTML file. Throws std::invalid_argument where the report has no method.
std::string interval_report_html(const IntervalReport& report);

}  // namespace fcp
