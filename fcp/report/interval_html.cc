#include "fcp/report/interval_html.h"

#include <algorithm>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/report/format.h"
#include "fcp/report/interval_figures.h"
#include "fcp/report/page.h"
#include "fcp/report/sections.h"

namespace fcp {
namespace {

using Row = std::vector<std::string>;

constexpr size_t kMostOutputs = 50;

bool any_infinite(const EvaluationReport& report) {
  return std::any_of(report.methods.begin(), report.methods.end(), [](const MethodResult& method) {
    return method.intervals().length.infinite_share > 0;
  });
}

// ---- headline ---------------------------------------------------------------------------------

std::string length_remark(const LengthSummary& length) {
  if (length.infinite_share == 1) return "all intervals are infinite";
  std::string remark = length.median ? "median " + format_number(*length.median) : "";
  if (length.infinite_share > 0) {
    remark += concat(remark.empty() ? "" : "; ", format_percent(length.infinite_share),
                     " infinite, the others ", format_number(length.mean_finite));
  }
  return remark;
}

std::string headline(const EvaluationReport& report, const Claim& claim) {
  const IntervalEvaluation& result = report.methods.front().intervals();
  const std::string tested =
      concat(format_count(result.rows, "test row"),
             result.outputs > 1 ? concat(", ", format_count(result.outputs, "output")) : "");
  return headline_section(claim,
                          concat(coverage_tile(claim),
                                 html_tile("Mean length", format_number(result.length.mean),
                                           length_remark(result.length), "main"),
                                 radius_tile(claim), calibration_tile(claim, tested)),
                          report.notes);
}

// ---- methods ----------------------------------------------------------------------------------

std::string methods(const EvaluationReport& report) {
  const bool infinite = any_infinite(report);
  const bool detection = any_detection(report.methods);
  const double main_length = report.methods.front().intervals().length.mean;
  Row headers = {"Method", "Coverage", format_confidence(report.confidence)};
  if (detection) headers.push_back("Detection");
  headers.insert(headers.end(), {"Mean length", "against first", "Median", "Interval score"});
  if (infinite) headers.push_back("Infinite");
  headers.insert(headers.end(), {"Worst third", "Radius"});

  std::vector<Row> rows;
  for (const MethodResult& method : report.methods) {
    const IntervalEvaluation& result = method.intervals();
    const bool first = &method == &report.methods.front();
    Row row = {method.name, format_percent(result.coverage.rate),
               format_percent_range(result.coverage.lower, result.coverage.upper)};
    if (detection) row.push_back(method.detection ? format_percent(method.detection->rate) : "–");
    row.push_back(format_number(result.length.mean));
    row.push_back(first ? "–" : difference_text(result.length.mean, main_length));
    row.push_back(result.length.median ? format_number(*result.length.median) : "–");
    row.push_back(format_number(result.interval_score));
    if (infinite) row.push_back(format_percent(result.length.infinite_share));
    row.push_back(format_percent(result.worst_third.coverage.rate));
    row.push_back(radius_text(method.radius));
    rows.push_back(std::move(row));
  }
  return methods_section(headers, rows,
                         "Lengths compare fairly where coverages are alike. The interval score "
                         "adds 2/α times the distance of each miss to the length; less is "
                         "better.");
}

// ---- parts ------------------------------------------------------------------------------------

std::string outputs_table(const IntervalEvaluation& result) {
  if (result.outputs < 2) return "";
  const std::string volume = result.volume ? concat("Mean volume, the product of a row's lengths: ",
                                                    format_number(*result.volume), ". ")
                                           : "";
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
                html_paragraph(volume + rest, "remark"), "</div>\n");
}

std::string parts(const EvaluationReport& report) {
  return html_section("parts", "Coverage by part",
                      concat(html_figures(part_figures(report)),
                             outputs_table(report.methods.front().intervals())));
}

}  // namespace

std::string interval_page(const EvaluationReport& report) {
  const Claim claim = claim_of(report);
  const std::string subtitle = concat(format_target(report.level), " prediction intervals for ",
                                      report.response, " by the score ", claim.method);
  return html_page(report.title.empty() ? "Prediction intervals" : report.title, subtitle,
                   concat(headline(report, claim), charts_section(interval_figures(report)),
                          methods(report), parts(report),
                          conditional_section(report.methods.front(), report.confidence, "length"),
                          promise_section(claim), provenance_section(report.provenance)));
}

}  // namespace fcp
