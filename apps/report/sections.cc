#include "apps/report/sections.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "fcp/base/error.h"

#include "apps/report/page.h"
#include "apps/report/results.h"
#include "apps/report/verdict.h"

namespace fcp {
namespace {

constexpr char kScoredRemark[] =
    "The interval score is the mean length plus 2/α times the distance of every miss: it rewards "
    "short intervals and punishes intervals that miss badly. ";

constexpr char kSetScoreRemark[] =
    "To the mean size 1/α is added for every label by which a missed truth lies beyond its set: "
    "sets that grow where rows are hard beat small ones that miss there. ";

std::string promise_card(const std::string& heading, const std::vector<std::string>& texts) {
  std::string html = concat("<div class=\"card\"><h3>", html_text(heading), "</h3><ul>\n");
  for (const std::string& text : texts) html += concat("<li>", html_text(text), "</li>\n");
  return html + "</ul></div>\n";
}

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

// A level as people read it: the columns of its table, which the script puts into the fields.
std::vector<std::string> level_fields(const LevelResult& at, const Claim& claim) {
  const Coverage& coverage = at.coverage;
  return {at.level.text(),
          format_target(at.level),
          format_percent(coverage.rate),
          format_percent_range(coverage.lower, coverage.upper),
          format_number(at.size),
          concat(format_count(coverage.rows - coverage.covered), " of ",
                 format_count(coverage.rows), " ", words_for(claim.kind).rows, " missed")};
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
      " coverage is ", field_html(2, fields[2]), " (", format_confidence(claim.confidence), " ",
      field_html(3, fields[3]), "), the mean ", sets ? "size " : "length ",
      field_html(4, fields[4]), "; ", field_html(5, fields[5]), ".</p>\n");
}

std::string levels_table(const std::vector<LevelResult>& levels, size_t own, const Claim& claim) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> attributes;
  for (size_t i = 0; i < levels.size(); ++i) {
    rows.push_back(level_fields(levels[i], claim));
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

std::string report_html(const EvaluationReport& report) {
  if (report.methods.empty()) throw std::invalid_argument("a report without a method");
  const Evaluation& main = report.methods.front().evaluation;
  if (std::holds_alternative<IntervalEvaluation>(main)) return interval_page(report);
  if (std::holds_alternative<SetEvaluation>(main)) return label_page(report);
  return pixel_page(report);
}

std::string coverage_tile(const Claim& claim) {
  const Coverage& coverage = claim.coverage;
  return html_tile(
      "Coverage", format_percent(coverage.rate),
      concat("target ", format_target(claim.level), "\n", format_confidence(claim.confidence), " ",
             format_percent_range(coverage.lower, coverage.upper)),
      coverage_verdict(claim) == Verdict::kTooLow ? "bad" : "main");
}

std::string rows_tile(const Claim& claim, std::string_view remark) {
  const std::string rows(words_for(claim.kind).rows);
  return html_tile(concat("Test ", rows), format_count(claim.coverage.rows),
                   concat("calibrated on ", format_count(claim.calibration_rows),
                          remark.empty() ? "" : concat("\n", remark)));
}

std::string page_title(const EvaluationReport& report, std::string_view otherwise) {
  const std::string title = report.title.empty() ? std::string(otherwise) : report.title;
  return report.model.empty() ? title : concat(title, " · ", report.model);
}

std::string headline_section(const EvaluationReport& report, const Claim& claim,
                             std::string_view tiles_html) {
  std::string html = concat(verdict_html(verdict_of(report, claim)), "<div class=\"tiles\">\n",
                            tiles_html, "</div>\n");
  if (claim.detection) {
    html += html_paragraph(
        concat("Detection coverage, of the set the method calibrates but does not print: ",
               format_percent(claim.detection->rate), " (",
               format_percent_range(claim.detection->lower, claim.detection->upper), ")."),
        "verdict");
  }
  const std::string verdict = verdict_text(claim);
  if (!verdict.empty()) html += html_paragraph(verdict, "verdict");
  for (const std::string& note : report.notes) html += html_paragraph(note, "note");
  return html_section("headline", "In short", html);
}

std::string charts_section(std::span<const Figure> figures) {
  return figures.empty() ? "" : html_section("charts", "Charts", html_figures(figures));
}

std::string conditional_section(const MethodResult& method, double confidence,
                                const std::string& size) {
  if (!method.conditional) return "";
  const ConditionalCoverage& found = *method.conditional;
  std::vector<std::vector<std::string>> rows = {
      {"Worst slab",
       found.worst_slab
           ? concat(format_percent(found.worst_slab->rate), " (", format_confidence(confidence),
                    " ", format_percent_range(found.worst_slab->lower, found.worst_slab->upper),
                    ")")
           : not_computed(found.rows),
       "the least coverage between two parallel planes that hold a tenth of the rows",
       "Cauchois, Gupta, Duchi 2021"},
      {"Excess risk",
       found.excess_risk ? concat(format_number(found.excess_risk->value, 2), " ± ",
                                  format_number(found.excess_risk->standard_error, 2))
                         : not_computed(found.rows),
       "how well misses can be foreseen from the columns; 0: not at all",
       "Braun, Holzmüller, Jordan, Bach 2025"},
      {"Coverage gap", found.gap ? format_percent(found.gap->gap) : not_computed(found.rows),
       "how far coverage is from its level in parts of alike rows, on average",
       "Braun, Holzmüller, Jordan, Bach 2025"},
      {"Squared error of coverage",
       found.gap ? concat(format_number(found.gap->squared_error, 2), " (by chance ",
                          format_number(found.gap->by_chance, 2), ")")
                 : not_computed(found.rows),
       "the mean square of these distances", "Chen, Li 2026"},
      {concat("Correlation of ", size, " and miss"), format_number(found.correlation, 2),
       concat("0: a miss is as likely whatever the ", size), "Feldman, Bates, Romano 2021"}};
  if (found.stability) {
    rows.push_back({"Stability", format_percent(*found.stability),
                    concat("what two of the ", found.refits + 1, " predictors' intervals share"),
                    "Jaccard's index"});
  }
  const std::vector<std::string> headers = {"", "Value", "Meaning", "Reference"};
  return html_section("conditional", "How even coverage is",
                      concat("<div class=\"card\">\n", html_table(headers, rows),
                             html_paragraph(concat("On ", format_count(found.rows, "test row"),
                                                   "; none of it is guaranteed."),
                                            "remark"),
                             "</div>\n"));
}

std::string promise_section(const Claim& claim) {
  return html_section(
      "promise", "What is promised",
      concat("<div class=\"promise\">\n", promise_card("Guaranteed", guaranteed_texts(claim)),
             promise_card("Not guaranteed", not_guaranteed_texts(claim)), "</div>\n"));
}

std::string table_section(const EvaluationReport& report) {
  if (report.split.empty() && report.columns.empty()) return "";
  std::vector<std::vector<std::string>> rows;
  for (const ColumnUse& column : report.columns) {
    rows.push_back({column.name, column.type, format_count(column.missing), column.use});
  }
  const std::vector<std::string> headers = {"Column", "Type", "Missing cells", "Used as"};
  const std::string split =
      report.split.empty() ? "" : html_paragraph(concat("Rows were split ", report.split, "."));
  return html_section("table", "The table",
                      concat("<div class=\"card\">\n", split,
                             rows.empty() ? "" : html_table(headers, rows), "</div>\n"));
}

std::string provenance_section(std::span<const std::pair<std::string, std::string>> pairs) {
  if (pairs.empty()) return "";
  return html_section("provenance", "Where this comes from",
                      concat("<div class=\"card\">", html_pairs(pairs), "</div>\n"));
}

std::string methods_section(std::span<const std::string> headers,
                            std::span<const std::vector<std::string>> rows, std::string_view remark,
                            std::string_view html) {
  return html_section("methods", "Methods side by side",
                      concat("<div class=\"card\">\n", html_table(headers, rows),
                             html_paragraph(remark, "remark"), "</div>\n", html));
}

std::string scope_remark(const EvaluationReport& report) {
  if (report.guaranteed_groups.empty() || report.methods.size() < 2) return "";
  return concat(" ", report.methods.front().name, " promises coverage for each ",
                report.guaranteed_classes ? "class" : "group",
                ", the others only over all rows together: that takes more room, so they are not "
                "compared with it.");
}

std::string candidates_html(const EvaluationReport& report, const std::string& size) {
  if (report.candidates.empty()) return "";
  double chosen = 0;
  for (const CandidateScore& one : report.candidates) {
    if (one.chosen) chosen = one.size;
  }
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> attributes;
  for (const CandidateScore& one : report.candidates) {
    rows.push_back({one.chosen ? one.name + " (chosen)" : one.name, format_number(one.size),
                    one.chosen ? "–" : difference_text(one.size, chosen)});
    attributes.push_back(one.chosen ? "class=\"current\"" : "");
  }
  const bool sets = size == "size";
  const std::string measure = report.candidates_by_volume ? "Volume per dimension"
                              : !report.candidates_scored ? concat("Mean ", size)
                              : sets                      ? "Size + misses"
                                                          : "Interval score";
  const std::vector<std::string> headers = {"Score", measure, "against the chosen"};
  return concat("<div class=\"card below\">\n<h3>What auto tried</h3>\n",
                html_table(headers, rows, attributes),
                html_paragraph(concat(!report.candidates_scored ? ""
                                      : sets                    ? kSetScoreRemark
                                                                : kScoredRemark,
                                      "Measured on calibration rows that were held out for "
                                      "selection, so the choice does not weaken the guarantee."),
                               "remark"),
                "</div>\n");
}

std::string filter_html(std::span<const std::string> targets) {
  std::string choice;
  for (size_t i = 0; i < targets.size(); ++i) {
    choice += concat("<option value=\"", i, "\">", html_text(targets[i]), "</option>");
  }
  if (targets.size() > 1) {
    choice = concat("<label>Target <select id=\"target\" autocomplete=\"off\">", choice,
                    "</select></label>");
  } else {
    choice.clear();
  }
  return concat(
      "<fieldset class=\"scripted show\"><legend>Show</legend>"
      "<label><input type=\"radio\" name=\"show\" value=\"all\" checked=\"\" "
      "autocomplete=\"off\"/> all rows</label>"
      "<label><input type=\"radio\" name=\"show\" value=\"covered\" autocomplete=\"off\"/> "
      "covered</label>"
      "<label><input type=\"radio\" name=\"show\" value=\"missed\" autocomplete=\"off\"/> "
      "missed</label>",
      choice, "</fieldset>\n");
}

std::string level_section(const EvaluationReport& report, const Claim& claim,
                          std::string_view html) {
  const std::vector<LevelResult> levels = levels_of(report);
  const size_t own = own_level(report, levels);
  const bool slides = levels.size() > 1;
  std::string content;
  if (slides) {
    content += concat("<div class=\"card\">\n", slider_html(levels, own, claim),
                      levels_table(levels, own, claim), "</div>\n");
  }
  content += html;
  if (claim.kind == RegionKind::kInterval && !report.examples.empty()) {
    content += concat("<div class=\"card below scripted\">", rows_table(), "</div>\n");
  }
  if (content.empty()) return "";
  return html_section("levels", slides ? "Choose the level" : "Test rows", content);
}

std::string difference_text(double size, double main) {
  if (!std::isfinite(size) || !std::isfinite(main) || main <= 0) return "–";
  const double difference = size / main - 1;
  return concat(difference > 0 ? "+" : "", format_percent(difference));
}

bool any_detection(std::span<const MethodResult> methods) {
  return std::any_of(methods.begin(), methods.end(),
                     [](const MethodResult& method) { return method.detection.has_value(); });
}

std::string radius_text(const std::optional<double>& radius) {
  return radius ? format_number(*radius) : "by row";
}

}  // namespace fcp
