// The frame of a one-page report, whatever it reports on: head, style, sections, tables.
//
// The page is one file: its style, its pictures, the report's JSON and the script are inside, and
// nothing is fetched from elsewhere. The script draws the charts from the JSON (charts.js), lets
// tables be sorted and the level be chosen (page.js); without it the words and tables are there.
// Set for laptop, phone and paper, light and dark, pointer and keyboard. Text on its background has
// a contrast of at least 4.5 in both schemes; what a colour says is also said by a shape, a dash or
// a word. Functions named html_… take plain text and escape it; arguments named `html` are markup
// already.
// Tested by tests/report/page_test.cc.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "fcp/evaluate/measures/evaluation_report.h"

namespace fcp {

// Escaped, and with a space that does not break before every per cent sign.
std::string html_text(std::string_view text);

std::string html_paragraph(std::string_view text, std::string_view css_class = {});

// A figure of the headline: small label, large value, a remark below.
std::string html_tile(std::string_view label, std::string_view value, std::string_view remark,
                      std::string_view css_class = {});

// The first column is a heading of its row and set to the left, all others to the right, but for
// columns of sentences. `row_attributes` is markup for the tag of each row, or empty.
std::string html_table(std::span<const std::string> headers,
                       std::span<const std::vector<std::string>> rows,
                       std::span<const std::string> row_attributes = {});

// Pairs as a list of terms.
std::string html_pairs(std::span<const std::pair<std::string, std::string>> pairs);

// The bytes of a PNG file as a picture inside the page.
std::string html_png(std::string_view png, std::string_view description);

// What charts.js draws: a kind of chart, and its data. A string is a JSON pointer to where the data
// stands in the page's JSON; all else is the data itself.
struct ChartData {
  std::string kind;
  nlohmann::ordered_json data;
};

// A chart with its caption. A `wide` one takes the full width of the page; what stands in `html` (a
// table) can be unfolded below the chart.
struct Figure {
  std::string caption;
  std::string remark = {};
  ChartData chart;
  bool wide = false;
  std::string html = {};
};

// Figures in pairs beside each other. One that is left over has its caption and its table beside
// its chart.
std::string html_figures(std::span<const Figure> figures);

std::string html_section(std::string_view id, std::string_view heading, std::string_view html);

// What can be unfolded; `css_class` may be empty.
std::string html_details(std::string_view summary, std::string_view html,
                         std::string_view css_class = {});

// The whole page around the sections, with the report's JSON for the charts; null: they have their
// own data.
std::string html_page(std::string_view title, std::string_view subtitle, std::string_view html,
                      const nlohmann::ordered_json& data = {});

// The one-page report on an evaluation, for people, whatever the regions are.
//
// What it says, in this order: the headline numbers and whether they are what the guarantee lets
// one expect, the charts, the methods side by side, coverage by part, examples, what is promised
// and what is not, and where it all comes from. Each kind of region has its own file
// (interval_page.cc, label_page.cc, pixel_page.cc); what they share is in sections.h. The page
// carries the report's JSON (json.h), from which its charts are drawn (charts.js).
// Tested by tests/report/page_test.cc, label_html_test.cc and pixel_html_test.cc.

// One self-contained HTML file, pictures included. Throws std::invalid_argument where the report
// has no method.
std::string report_html(const EvaluationReport& report);

}  // namespace fcp
