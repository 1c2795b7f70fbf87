#include "fcp/report/html.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <stdexcept>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/report/format.h"
#include "fcp/report/interval_figures.h"
#include "fcp/report/page.h"
#include "fcp/report/promise.h"

namespace fcp {
namespace {

using Row = std::vector<std::string>;

constexpr size_t kMostOutputs = 50;

std::string confidence_name(const IntervalReport& report) {
  return format_percent(report.confidence, 0) + " CI";
}

std::string range_text(const Coverage& coverage) {
  return format_percent_range(coverage.lower, coverage.upper);
}

bool any_infinite(const IntervalReport& report) {
  return std::any_of(report.methods.begin(), report.methods.end(), [](const MethodResult& method) {
    return method.evaluation.length.infinite_share > 0;
  });
}

// ---- headline ---------------------------------------------------------------------------------

std::string alarm(const IntervalReport& report) {
  const std::string text = infinite_radius_text(report);
  if (text.empty()) return "";
  return concat("<div class=\"alarm\" role=\"alert\"><strong>The radius is infinite (∞).</strong>",
                html_paragraph(text), "</div>\n");
}

std::string length_remark(const LengthSummary& length) {
  if (length.infinite_share == 1) return "all intervals are infinite";
  std::string remark = length.median ? "median " + format_number(*length.median) : "";
  if (length.infinite_share > 0) {
    remark += concat(remark.empty() ? "" : "; ", format_percent(length.infinite_share),
                     " infinite, the others ", format_number(length.mean_finite));
  }
  return remark;
}

std::string tiles(const IntervalReport& report) {
  const MethodResult& main = report.methods.front();
  const IntervalEvaluation& result = main.evaluation;
  const bool bad = coverage_verdict(report) == Verdict::kTooLow;
  std::string html = "<div class=\"tiles\">\n";
  html += html_tile("Coverage", format_percent(result.coverage.rate),
                    concat("target ", format_target(report.level), "\n", confidence_name(report),
                           " ", range_text(result.coverage)),
                    bad ? "bad" : "main");
  html += html_tile("Mean length", format_number(result.length.mean), length_remark(result.length),
                    "main");
  html += html_tile("Radius", main.radius ? format_number(*main.radius) : "by row",
                    concat("score ", main.name, ", α = ", report.level.text()));
  html += html_tile(
      "Calibration rows", format_count(report.calibration_rows),
      concat(format_count(result.rows, "test row"),
             result.outputs > 1 ? concat(", ", format_count(result.outputs, "output")) : ""));
  return html + "</div>\n";
}

std::string headline(const IntervalReport& report) {
  std::string html = alarm(report) + tiles(report);
  const MethodResult& main = report.methods.front();
  if (main.detection) {
    html += html_paragraph(
        concat("Detection coverage, of the set the method calibrates but does "
               "not print: ",
               format_percent(main.detection->rate), " (", range_text(*main.detection), ")."),
        "verdict");
  }
  const std::string verdict = verdict_text(report);
  if (!verdict.empty()) html += html_paragraph(verdict, "verdict");
  for (const std::string& note : report.notes) html += html_paragraph(note, "note");
  return html_section("headline", "In short", html);
}

std::string charts(const IntervalReport& report) {
  const std::vector<Figure> figures = interval_figures(report);
  return figures.empty() ? "" : html_section("charts", "Charts", html_figures(figures));
}

// ---- methods ----------------------------------------------------------------------------------

std::string ratio_text(double length, double main) {
  if (!std::isfinite(length) || !std::isfinite(main) || main <= 0) return "–";
  const double difference = length / main - 1;
  return concat(difference > 0 ? "+" : "", format_percent(difference));
}

std::string methods(const IntervalReport& report) {
  const bool infinite = any_infinite(report);
  const bool detection = std::any_of(report.methods.begin(), report.methods.end(),
                                     [](const MethodResult& m) { return m.detection.has_value(); });
  const double main_length = report.methods.front().evaluation.length.mean;
  Row headers = {"Method", "Coverage", confidence_name(report)};
  if (detection) headers.push_back("Detection");
  headers.insert(headers.end(), {"Mean length", "against first", "Median", "Interval score"});
  if (infinite) headers.push_back("Infinite");
  headers.insert(headers.end(), {"Worst third", "Radius"});

  std::vector<Row> rows;
  for (const MethodResult& method : report.methods) {
    const IntervalEvaluation& result = method.evaluation;
    const bool first = &method == &report.methods.front();
    Row row = {method.name, format_percent(result.coverage.rate), range_text(result.coverage)};
    if (detection) row.push_back(method.detection ? format_percent(method.detection->rate) : "–");
    row.push_back(format_number(result.length.mean));
    row.push_back(first ? "–" : ratio_text(result.length.mean, main_length));
    row.push_back(result.length.median ? format_number(*result.length.median) : "–");
    row.push_back(format_number(result.interval_score));
    if (infinite) row.push_back(format_percent(result.length.infinite_share));
    row.push_back(format_percent(result.worst_third.coverage.rate));
    row.push_back(method.radius ? format_number(*method.radius) : "by row");
    rows.push_back(std::move(row));
  }
  return html_section(
      "methods", "Methods side by side",
      concat("<div class=\"card\">\n", html_table(headers, rows),
             html_paragraph("Lengths compare fairly where coverages are alike. The interval score "
                            "adds 2/α times the distance of each miss to the length; less is "
                            "better.",
                            "remark"),
             "</div>\n"));
}

// ---- parts ------------------------------------------------------------------------------------

std::string outputs_table(const IntervalEvaluation& result) {
  if (result.outputs < 2) return "";
  std::vector<Row> rows;
  for (size_t k = 0; k < std::min(result.outputs, kMostOutputs); ++k) {
    const LengthSummary& length = result.output_length.at(k);
    rows.push_back({concat("output ", k), format_percent(result.output_coverage.at(k)),
                    format_number(length.mean),
                    length.median ? format_number(*length.median) : "–"});
  }
  const Row headers = {"Output", "Coverage alone", "Mean length", "Median"};
  const std::string rest = result.outputs > kMostOutputs
                               ? concat("The first ", kMostOutputs, " of ", result.outputs, ".")
                               : "";
  return concat("<div class=\"card outputs\">", html_table(headers, rows),
                html_paragraph(rest, "remark"), "</div>\n");
}

std::string parts(const IntervalReport& report) {
  return html_section(
      "parts", "Coverage by part",
      concat(html_figures(part_figures(report)), outputs_table(report.methods.front().evaluation)));
}

// ---- promise and provenance -------------------------------------------------------------------

std::string promise_card(const std::string& heading, const std::vector<std::string>& texts) {
  std::string html = concat("<div class=\"card\"><h3>", html_text(heading), "</h3><ul>\n");
  for (const std::string& text : texts) html += concat("<li>", html_text(text), "</li>\n");
  return html + "</ul></div>\n";
}

std::string promise(const IntervalReport& report) {
  return html_section(
      "promise", "What is promised",
      concat("<div class=\"promise\">\n", promise_card("Guaranteed", guaranteed_texts(report)),
             promise_card("Not guaranteed", not_guaranteed_texts(report)), "</div>\n"));
}

std::string provenance(const IntervalReport& report) {
  if (report.provenance.empty()) return "";
  return html_section("provenance", "Where this comes from",
                      concat("<div class=\"card\">", html_pairs(report.provenance), "</div>\n"));
}

}  // namespace

std::string interval_report_html(const IntervalReport& report) {
  if (report.methods.empty()) throw std::invalid_argument("a report without a method");
  const std::string subtitle =
      concat(format_target(report.level), " prediction intervals for ", report.response,
             " by the score ", report.methods.front().name);
  return html_page(report.title, subtitle,
                   concat(headline(report), charts(report), methods(report), parts(report),
                          promise(report), provenance(report)));
}

}  // namespace fcp
