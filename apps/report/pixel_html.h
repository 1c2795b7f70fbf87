// The page of a report on the bands, or label sets, of images (see html.h), and the table that it
// shares with the console.
//
// Of a score that obeys the law, `coverage` is what is guaranteed: the rate of images with at least
// the share of pixels in that was asked for. Of the surrogate it is only what happens, and what is
// guaranteed is `detection`, the rate of images whose score is within the radius: that the two
// differ must be seen, so they stand side by side.
// Tested by tests/report/pixel_html_test.cc.
#pragma once

#include <string>
#include <vector>

#include "fcp/evaluate/measures/evaluation_report.h"

namespace fcp {

std::string pixel_page(const EvaluationReport& report);

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
