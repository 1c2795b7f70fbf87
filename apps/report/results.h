// What an experiment found, as tables, charts and words; and its three faces: a section of a page,
// a chapter in Markdown, and text for the terminal.
//
// Words may hold `code` between backticks. Tables are text already: numbers are formatted by those
// who know what they mean. Tested by tests/report/result_section_test.cc.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fcp/base/text_table.h"
#include "fcp/evaluate/measures/coverage.h"
#include "fcp/level.h"

#include "apps/report/page.h"

namespace fcp {

struct ResultTable {
  std::string caption;
  std::vector<std::string> headers;
  std::vector<std::vector<std::string>> rows;
  bool folded = false;  // long: on the page it is unfolded by a click, on the terminal left out
};

struct ResultSection {
  std::string id;
  std::string title;
  std::string claim;                  // of the paper
  std::string setup;                  // what was run
  std::vector<std::string> readings;  // what the numbers say
  std::vector<ResultTable> tables;
  std::vector<Figure> figures;     // on the page only
  std::vector<std::string> notes;  // what was left out, and why
};

struct ResultPage {
  std::string title;
  std::string subtitle;
  std::vector<ResultSection> sections;
  std::vector<std::pair<std::string, std::string>> provenance;
};

// A page of its own, without anything from elsewhere, with a list of its sections.
std::string results_html(const ResultPage& page);

// The same in Markdown, without the charts.
std::string results_markdown(const ResultPage& page);

// For the terminal: title, tables that are not folded, notes.
std::string section_text(const ResultSection& section);

// What a report says of levels and parts, as people read it, and text made safe for the page. Plain
// numbers are those of base/text_table.h.
// Tested by tests/report/console_test.cc.

// What is promised at this level, 1 − α: "90 %", "99.9 %".
std::string format_target(const Level& level);

// "95 % CI".
std::string format_confidence(double confidence);

// What lies in a stratum: lengths "0.512–1.75", or set sizes "2–5"; one number where its ends are
// equal.
std::string format_lengths(const Stratum& stratum);
std::string format_sizes(const Stratum& stratum);

// The same as the name of a part: "0.512–1.75", or "2–5 labels".
std::string format_stratum(const Stratum& stratum, bool sizes);

// In the place of a figure: these test rows do not determine it.
std::string not_computed(size_t rows);

// Text for HTML and SVG: & < > " ' are written as entities, control characters left out.
std::string escape_text(std::string_view text);

// Bytes as base64 with padding (RFC 4648), for pictures inside the page.
std::string base64_text(std::string_view bytes);

}  // namespace fcp
