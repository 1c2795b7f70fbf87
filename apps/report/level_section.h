// The part of a page where its reader chooses the level: a slider over the levels that were
// evaluated, what coverage and length (or size) are at each, and the data for the script (page.js).
// Every text that the script shows was written here; it computes nothing.
//
// A report that was evaluated at one level alone has no slider, but its rows can be filtered.
// Tested by tests/report/level_section_test.cc, and in a browser by tests/cli/test_page.py.
#pragma once

#include <string>
#include <string_view>

#include "apps/report/promise.h"

namespace fcp {

// `html` follows the slider: what it moves. Without either, only the data of the examples; empty
// where there are none.
std::string level_section(const EvaluationReport& report, const Claim& claim,
                          std::string_view html);

// The number of the first of the method's levels whose intervals the chart of rows has room for:
// those of smaller α may be cut off at its edge.
size_t first_drawn_level(const MethodResult& method);

// All rows, covered, or missed.
std::string filter_html();

// At which of so many levels of the method an example is covered, as a 1 or 0 for each.
std::string covered_levels(const Example& example, size_t levels);

}  // namespace fcp
