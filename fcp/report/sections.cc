#include "fcp/report/sections.h"

#include <algorithm>
#include <cmath>

#include "fcp/base/error.h"
#include "fcp/report/format.h"

namespace fcp {
namespace {

std::string alarm(const Claim& claim) {
  const std::string text = infinite_radius_text(claim);
  if (text.empty()) return "";
  return concat("<div class=\"alarm\" role=\"alert\"><strong>The radius is infinite (∞).</strong>",
                html_paragraph(text), "</div>\n");
}

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

std::string radius_tile(const Claim& claim) {
  return html_tile("Radius", radius_text(claim.radius),
                   concat("score ", claim.method, ", α = ", claim.level.text()));
}

std::string calibration_tile(const Claim& claim, std::string_view remark) {
  return html_tile("Calibration rows", format_count(claim.calibration_rows), remark);
}

std::string headline_section(const Claim& claim, std::string_view tiles_html,
                             std::span<const std::string> notes) {
  std::string html = concat(alarm(claim), "<div class=\"tiles\">\n", tiles_html, "</div>\n");
  if (claim.detection) {
    html += html_paragraph(
        concat("Detection coverage, of the set the method calibrates but does not print: ",
               format_percent(claim.detection->rate), " (",
               format_percent_range(claim.detection->lower, claim.detection->upper), ")."),
        "verdict");
  }
  const std::string verdict = verdict_text(claim);
  if (!verdict.empty()) html += html_paragraph(verdict, "verdict");
  for (const std::string& note : notes) html += html_paragraph(note, "note");
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
       concat(format_percent(found.worst_slab.rate), " (", format_confidence(confidence), " ",
              format_percent_range(found.worst_slab.lower, found.worst_slab.upper), ")"),
       "the least coverage between two parallel planes that hold a tenth of the rows",
       "Cauchois, Gupta, Duchi 2021"},
      {"Excess risk",
       concat(format_number(found.excess_risk.value, 2), " ± ",
              format_number(found.excess_risk.standard_error, 2)),
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

std::string promise_section(const Claim& claim) {
  return html_section(
      "promise", "What is promised",
      concat("<div class=\"promise\">\n", promise_card("Guaranteed", guaranteed_texts(claim)),
             promise_card("Not guaranteed", not_guaranteed_texts(claim)), "</div>\n"));
}

std::string provenance_section(std::span<const std::pair<std::string, std::string>> pairs) {
  if (pairs.empty()) return "";
  return html_section("provenance", "Where this comes from",
                      concat("<div class=\"card\">", html_pairs(pairs), "</div>\n"));
}

std::string methods_section(std::span<const std::string> headers,
                            std::span<const std::vector<std::string>> rows,
                            std::string_view remark) {
  return html_section("methods", "Methods side by side",
                      concat("<div class=\"card\">\n", html_table(headers, rows),
                             html_paragraph(remark, "remark"), "</div>\n"));
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
