#include "apps/report/level_section.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"

#include "apps/report/charts.h"
#include "apps/report/format.h"
#include "apps/report/page.h"

namespace fcp {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kDrawnFrom = 0.05;  // α

// The levels of the main method; its own alone where no others were evaluated.
std::vector<LevelResult> levels_of(const EvaluationReport& report) {
  const MethodResult& main = report.methods.front();
  if (!main.levels.empty()) return main.levels;
  const auto* intervals = std::get_if<IntervalEvaluation>(&main.evaluation);
  return {{report.level, main.coverage(),
           intervals ? intervals->length.mean : main.sets().mean_size, 0}};
}

size_t own_level(const EvaluationReport& report, const std::vector<LevelResult>& levels) {
  const auto own = std::find_if(levels.begin(), levels.end(),
                                [&](const LevelResult& at) { return at.level == report.level; });
  return static_cast<size_t>(own == levels.end() ? 0 : own - levels.begin());
}

std::string plain_number(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), value);
  return std::string(text, end.ptr);
}

// In the order that the fields of the page name them; the last is for the script alone.
std::vector<std::string> level_fields(const LevelResult& at, const Claim& claim) {
  const Coverage& coverage = at.coverage;
  return {at.level.text(),
          format_percent(coverage.rate),
          format_percent_range(coverage.lower, coverage.upper),
          format_number(at.size),
          concat(format_count(coverage.rows - coverage.covered), " of ",
                 format_count(coverage.rows), " ", words_for(claim.kind).rows, " missed"),
          plain_number(at.level.value())};
}

// Field `i` of the level that is shown.
std::string field_html(size_t i, const std::string& text) {
  return concat("<b data-field=\"", i, "\">", html_text(text), "</b>");
}

std::string slider_html(const std::vector<LevelResult>& levels, size_t own, const Claim& claim) {
  const std::vector<std::string> fields = level_fields(levels[own], claim);
  const bool sets = claim.kind == RegionKind::kLabelSet;
  return concat(
      "<div class=\"control\"><label for=\"alpha\">α, the share of rows that may be missed: ",
      field_html(0, fields[0]), "</label>\n<input type=\"range\" id=\"alpha\" min=\"0\" max=\"",
      levels.size() - 1, "\" step=\"1\" value=\"", own,
      "\" autocomplete=\"off\">\n<div class=\"ends\"><span>α = ",
      html_text(levels.front().level.text()), sets ? ": larger sets" : ": longer intervals",
      "</span><span>α = ", html_text(levels.back().level.text()),
      sets ? ": smaller sets" : ": shorter intervals",
      "</span></div></div>\n<p class=\"levels\" role=\"status\">At α = ", field_html(0, fields[0]),
      " coverage is ", field_html(1, fields[1]), " (", format_confidence(claim.confidence), " ",
      field_html(2, fields[2]), "), the mean ", sets ? "size " : "length ",
      field_html(3, fields[3]), "; ", field_html(4, fields[4]), ".</p>\n");
}

std::string levels_table(const std::vector<LevelResult>& levels, size_t own, const Claim& claim) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> attributes;
  for (size_t i = 0; i < levels.size(); ++i) {
    std::vector<std::string> cells = level_fields(levels[i], claim);
    cells.pop_back();
    cells.insert(cells.begin() + 1, format_target(levels[i].level));
    rows.push_back(std::move(cells));
    attributes.push_back(concat("data-level=\"", i, "\"", i == own ? " class=\"current\"" : ""));
  }
  const std::vector<std::string> headers = {
      "α",
      "Target",
      "Coverage",
      format_confidence(claim.confidence),
      claim.kind == RegionKind::kLabelSet ? "Mean size" : "Mean length",
      "Missed"};
  return html_details("The numbers at every level", html_table(headers, rows, attributes));
}

// The rows of the chart: name, where covered, and its numbers as they are shown.
Json row_data(const EvaluationReport& report) {
  Json rows = Json::array();
  for (const Example& example : drawn_examples(report.examples)) {
    const IntervalExample& row = example.interval();
    std::string numbers = concat(format_number(row.prediction), " ", format_number(row.truth));
    const auto add = [&](double lower, double upper) {
      numbers += concat(" ", format_number(lower), " ", format_number(upper));
    };
    for (const IntervalAtLevel& at : row.at_levels) add(at.interval.lower, at.interval.upper);
    if (row.at_levels.empty()) add(row.lower, row.upper);
    rows.push_back({example.name, covered_levels(example, row.at_levels.size()), numbers});
  }
  return rows;
}

std::string data_script(const EvaluationReport& report, const std::vector<LevelResult>& levels,
                        size_t own, const Claim& claim) {
  Json data = {{"own", own}};
  for (const LevelResult& at : levels) data["levels"].push_back(level_fields(at, claim));
  if (claim.kind == RegionKind::kInterval) data["rows"] = row_data(report);
  std::string text = data.dump(-1, ' ', false, Json::error_handler_t::replace);
  for (size_t at = 0; (at = text.find('<', at)) != std::string::npos;) {
    text.replace(at, 1, "\\u003c");  // nothing inside ends the element
  }
  return concat("<script type=\"application/json\" id=\"report-data\">", text, "</script>\n");
}

// Filled in by the script, at the level and with the rows that are chosen.
std::string rows_table() {
  return html_details("The rows, one by one",
                      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"table\">"
                      "<table data-rows=\"\"><thead><tr>"
                      "<th scope=\"col\">Row</th><th scope=\"col\">Prediction</th>"
                      "<th scope=\"col\">Lower</th><th scope=\"col\">Upper</th>"
                      "<th scope=\"col\">Truth</th><th scope=\"col\">Covered</th></tr></thead>\n"
                      "<tbody></tbody></table></div>\n",
                      "scripted");
}

}  // namespace

size_t first_drawn_level(const MethodResult& method) {
  size_t level = 0;
  while (level < method.levels.size() && method.levels[level].level.value() < kDrawnFrom) ++level;
  return level;
}

std::string filter_html() {
  return "<fieldset class=\"scripted show\"><legend>Show</legend>"
         "<label><input type=\"radio\" name=\"show\" value=\"all\" checked=\"\" "
         "autocomplete=\"off\"/> all rows</label>"
         "<label><input type=\"radio\" name=\"show\" value=\"covered\" autocomplete=\"off\"/> "
         "covered</label>"
         "<label><input type=\"radio\" name=\"show\" value=\"missed\" autocomplete=\"off\"/> "
         "missed</label></fieldset>\n";
}

std::string covered_levels(const Example& example, size_t levels) {
  std::string text;
  if (const auto* interval = std::get_if<IntervalExample>(&example.region)) {
    for (const IntervalAtLevel& at : interval->at_levels) text += at.covered ? '1' : '0';
  } else if (!example.labels().at_levels.empty()) {
    const std::vector<LabelAtLevels>& labels = example.labels().at_levels;
    const auto truth = std::find_if(labels.begin(), labels.end(), [&](const LabelAtLevels& label) {
      return label.name == example.labels().truth;
    });
    const size_t covered = truth == labels.end() ? 0 : truth->last + 1;
    text = std::string(covered, '1') + std::string(levels - std::min(levels, covered), '0');
  }
  return text.empty() ? std::string(example.covered ? "1" : "0") : text;
}

std::string level_section(const EvaluationReport& report, const Claim& claim,
                          std::string_view html) {
  const std::vector<LevelResult> levels = levels_of(report);
  const size_t own = own_level(report, levels);
  const bool slides = levels.size() > 1;
  if (!slides && html.empty() && report.examples.empty()) return "";
  const bool intervals = claim.kind == RegionKind::kInterval && !report.examples.empty();
  std::string content;
  if (slides) {
    content += concat("<div class=\"card\">\n", slider_html(levels, own, claim),
                      levels_table(levels, own, claim), "</div>\n");
  }
  content += html;
  if (intervals) content += concat("<div class=\"card below scripted\">", rows_table(), "</div>\n");
  std::string script = data_script(report, levels, own, claim);
  if (content.empty()) return script;
  content += script;
  return html_section("levels", slides ? "Choose the level" : "Test rows", content);
}

}  // namespace fcp
