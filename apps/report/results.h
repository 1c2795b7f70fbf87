// What an experiment found, as tables, charts and words; and its three faces: a section of a page,
// a chapter in Markdown, and text for the terminal.
//
// Words may hold `code` between backticks. Tables are text already: numbers are formatted by those
// who know what they mean. Tested by tests/report/result_section_test.cc.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

}  // namespace fcp
