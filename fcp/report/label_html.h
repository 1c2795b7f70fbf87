// The one-page report on label sets, for people: the twin of html.h.
//
// What it says, in this order: the headline numbers and whether they are what the guarantee lets
// one expect, the charts, the methods side by side, coverage by class and group, examples, what is
// promised and what is not, and where it all comes from. Tested by tests/report/label_html_test.cc.
#pragma once

#include <string>

#include "fcp/report/label_report.h"

namespace fcp {

// One self-contained HTML file, pictures included. Throws std::invalid_argument where the report
// has no method.
std::string label_report_html(const LabelReport& report);

}  // namespace fcp
