// The frame of a one-page report, whatever it reports on: head, style, sections, tables.
//
// The page is one file: its style, its pictures and its script (page.js) are inside, and nothing is
// fetched from elsewhere. Without the script everything can still be read; with it charts show
// their values, tables are sorted by a click, and the level can be chosen. Set for laptop, phone
// and paper, light and dark, pointer and keyboard. Functions named html_… take plain text and
// escape it; arguments named `html` are markup already.
// Tested by tests/report/html_test.cc.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

// A chart with its caption. A `wide` one takes the full width of the page and scrolls on a
// phone; what stands in `html` (a table) can be unfolded below the chart.
struct Figure {
  std::string caption;
  std::string remark = {};
  std::string chart;
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

// The CSS of the page, besides that of its charts.
std::string_view page_style();
std::string_view page_script();

// The whole page around the sections.
std::string html_page(std::string_view title, std::string_view subtitle, std::string_view html);

}  // namespace fcp
