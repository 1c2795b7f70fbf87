#include "apps/report/interval_html.h"

#include <algorithm>
#include <vector>

#include "fcp/base/error.h"

#include "apps/report/format.h"
#include "apps/report/interval_figures.h"
#include "apps/report/level_section.h"
#include "apps/report/page.h"
#include "apps/report/sections.h"

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

std::string length_remark(const IntervalEvaluation& result, const std::string& response) {
  const LengthSummary& length = result.length;
  if (length.infinite_share == 1) return "all intervals are infinite";
  std::string remark = length.median ? "median " + format_number(*length.median) : "";
  if (result.side != BoundSide::kBoth) {
    remark += concat(remark.empty() ? "" : ", ", "from the prediction to the ",
                     side_name(result.side), " bound");
  }
  if (length.infinite_share > 0) {
    remark += concat(remark.empty() ? "" : "; ", format_percent(length.infinite_share),
                     " infinite, the others ", format_number(length.mean_finite));
  }
  if (result.output_error.size() == 1) {
    remark += concat(remark.empty() ? "" : "\n", response, " has a standard deviation of ",
                     format_number(result.output_error[0].deviation));
  }
  return remark;
}

// Of one output; those of several stand in their table.
std::string error_tile(const IntervalEvaluation& result, const std::string& response) {
  if (result.output_error.size() != 1) return "";
  const PointError& error = result.output_error[0];
  return html_tile(concat("Error in ", response, " (RMSE)"), format_number(error.rmse),
                   concat("MAE ", format_number(error.mae),
                          "\nalways predicting the mean: ", format_number(error.deviation)));
}

std::string headline(const EvaluationReport& report, const Claim& claim) {
  const IntervalEvaluation& result = report.methods.front().intervals();
  const std::string unit = result.outputs == 1 ? concat(" in ", report.response) : "";
  return headline_section(
      report, claim,
      concat(coverage_tile(claim),
             html_tile(concat("Mean length", unit), format_number(result.length.mean),
                       length_remark(result, report.response), "main"),
             error_tile(result, report.response),
             rows_tile(claim, result.outputs > 1 ? format_count(result.outputs, "output") : "")));
}

// ---- methods ----------------------------------------------------------------------------------

std::string methods(const EvaluationReport& report) {
  const bool infinite = any_infinite(report);
  const bool detection = any_detection(report.methods);
  const double main_length = report.methods.front().intervals().length.mean;
  const bool scoped = !report.guaranteed_groups.empty();
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
    row.push_back(first || scoped ? "–" : difference_text(result.length.mean, main_length));
    row.push_back(result.length.median ? format_number(*result.length.median) : "–");
    row.push_back(format_number(result.interval_score));
    if (infinite) row.push_back(format_percent(result.length.infinite_share));
    row.push_back(format_percent(result.worst_third.coverage.rate));
    row.push_back(radius_text(method.radius));
    rows.push_back(std::move(row));
  }
  const std::string remark =
      "Lengths compare fairly where coverages are alike. The interval score adds 2/α times the "
      "distance of each miss to the length; less is better.";
  return methods_section(headers, rows, remark + scope_remark(report),
                         candidates_html(report, "length"));
}

// ---- parts ------------------------------------------------------------------------------------

std::string outputs_table(const IntervalEvaluation& result) {
  if (result.outputs < 2) return "";
  std::string volume;
  if (result.joint_coverage) {
    volume = concat("All outputs at once: ", format_percent(*result.joint_coverage), ". ");
  }
  if (result.volume) {
    volume += concat("Mean volume of a row's region: ", format_number(*result.volume), "; ",
                     format_number(*result.volume_per_dimension), " per dimension. ");
  }
  std::vector<Row> rows;
  for (size_t k = 0; k < std::min(result.outputs, kMostOutputs); ++k) {
    const LengthSummary& length = result.output_length.at(k);
    Row row = {concat("output ", k), format_percent(result.output_coverage.at(k)),
               format_number(length.mean), length.median ? format_number(*length.median) : "–"};
    if (!result.output_error.empty()) {
      const PointError& error = result.output_error.at(k);
      row.insert(row.end(), {format_number(error.rmse), format_number(error.mae),
                             format_number(error.deviation)});
    }
    rows.push_back(std::move(row));
  }
  Row headers = {"Output", "Coverage alone", "Mean length", "Median"};
  if (!result.output_error.empty()) {
    headers.insert(headers.end(), {"RMSE", "MAE", "Deviation of the truth"});
  }
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
                                      report.response, ", score ", claim.method);
  const std::vector<Figure> sample = sample_figure(report);
  const std::string rows = sample.empty() ? "" : filter_html() + html_figures(sample);
  return html_page(page_title(report, "Prediction intervals"), subtitle,
                   concat(headline(report, claim), level_section(report, claim, rows),
                          charts_section(interval_figures(report)), parts(report), methods(report),
                          conditional_section(report.methods.front(), report.confidence, "length"),
                          distribution_section(report.methods.front()), promise_section(claim),
                          table_section(report), provenance_section(report.provenance)));
}

}  // namespace fcp
