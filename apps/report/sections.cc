#include "apps/report/sections.h"

#include <algorithm>
#include <cmath>

#include "fcp/base/error.h"

#include "apps/report/format.h"
#include "apps/report/verdict.h"

namespace fcp {
namespace {

constexpr char kScoredRemark[] =
    "The interval score is the mean length plus 2/α times the distance of every miss: it rewards "
    "short intervals and punishes intervals that miss badly. ";

std::string promise_card(const std::string& heading, const std::vector<std::string>& texts) {
  std::string html = concat("<div class=\"card\"><h3>", html_text(heading), "</h3><ul>\n");
  for (const std::string& text : texts) html += concat("<li>", html_text(text), "</li>\n");
  return html + "</ul></div>\n";
}

}  // namespace

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

std::string distribution_section(const MethodResult& method) {
  if (!method.distribution) return "";
  const DistributionEvaluation& found = *method.distribution;
  std::vector<std::vector<std::string>> bins, thresholds;
  for (size_t i = 0; i < found.pit.size(); ++i) {
    const auto rows = static_cast<double>(found.pit[i]);
    const bool within = found.pit_low <= rows && rows <= found.pit_high;
    bins.push_back({concat(format_number(static_cast<double>(i) / kPitBins), " to ",
                           format_number(static_cast<double>(i + 1) / kPitBins)),
                    format_count(found.pit[i]), within ? "" : "beyond chance"});
  }
  for (const ThresholdCalibration& one : found.thresholds) {
    thresholds.push_back({"above " + format_number(one.threshold), format_percent(one.predicted),
                          format_percent(one.observed)});
  }
  const std::vector<std::string> bin_headers = {"Place of the truth (PIT)", "Rows", ""};
  const std::vector<std::string> event_headers = {"Event", "Predicted", "Observed"};
  return html_section(
      "distribution", "Predictive distributions",
      concat("<div class=\"card\">\n",
             html_paragraph(concat("CRPS ", format_number(found.crps), " on ",
                                   format_count(found.rows, "test row"),
                                   ": the mean error of the distributions, in the target's unit."),
                            "remark"),
             html_table(bin_headers, bins),
             html_paragraph(concat("Where distributions are calibrated, a count lies between ",
                                   format_number(found.pit_low), " and ",
                                   format_number(found.pit_high), " nineteen times in twenty."),
                            "remark"),
             html_table(event_headers, thresholds), "</div>\n"));
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
  const std::string measure = report.candidates_scored      ? "Interval score"
                              : report.candidates_by_volume ? "Volume per dimension"
                                                            : concat("Mean ", size);
  const std::vector<std::string> headers = {"Score", measure, "against the chosen"};
  return concat("<div class=\"card below\">\n<h3>What auto tried</h3>\n",
                html_table(headers, rows, attributes),
                html_paragraph(concat(report.candidates_scored ? kScoredRemark : "",
                                      "Measured on calibration rows that were held out for "
                                      "selection, so the choice does not weaken the guarantee."),
                               "remark"),
                "</div>\n");
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
