// The page of a report on prediction intervals; see page.h.
#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "fcp/base/error.h"

#include "apps/report/json.h"
#include "apps/report/results.h"
#include "apps/report/sections.h"

namespace fcp {
namespace {

using Row = std::vector<std::string>;

constexpr size_t kMostOutputs = 50;
constexpr size_t kMostNamed = 6;  // targets in the subtitle

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

std::string outputs_table(const IntervalEvaluation& result, const std::vector<std::string>& names) {
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
    Row row = {names[k], format_percent(result.output_coverage.at(k)), format_number(length.mean),
               length.median ? format_number(*length.median) : "–"};
    if (!result.output_error.empty()) {
      const PointError& error = result.output_error.at(k);
      row.insert(row.end(), {format_number(error.rmse), format_number(error.mae),
                             format_number(error.deviation)});
    }
    rows.push_back(std::move(row));
  }
  Row headers = {"Target", "Coverage alone", "Mean length", "Median"};
  if (!result.output_error.empty()) {
    headers.insert(headers.end(), {"RMSE", "MAE", "Deviation of the truth"});
  }
  const std::string rest = result.outputs > kMostOutputs
                               ? concat("The first ", kMostOutputs, " of ", result.outputs, ".")
                               : "";
  return concat("<div class=\"card outputs\">", html_table(headers, rows),
                html_paragraph(volume + rest, "remark"), "</div>\n");
}

// ---- charts -------------------------------------------------------------------------------------

std::string lengths_table(std::vector<double> lengths) {
  std::sort(lengths.begin(), lengths.end());
  std::vector<std::vector<std::string>> rows;
  for (const int percent : {5, 25, 50, 75, 95}) {
    const size_t at = (lengths.size() - 1) * static_cast<size_t>(percent) / 100;
    rows.push_back({concat(percent, " %"), format_number(lengths[at])});
  }
  const std::vector<std::string> headers = {"Share of the intervals", "at most so long"};
  return html_table(headers, rows);
}

void add_lengths(std::vector<Figure>& figures, const EvaluationReport& report) {
  const MethodResult& main = report.methods.front();
  if (main.lengths.empty()) return;
  std::vector<MethodMean> means;
  for (const MethodResult& method : report.methods) {
    means.push_back({method.name, method.intervals().length.mean_finite});
  }
  figures.push_back(
      {.caption = "Lengths of the intervals",
       .remark = concat("Intervals of ", main.name, "; lines mark the mean of each method."),
       .chart = length_chart(main.lengths, means),
       .html = lengths_table(main.lengths)});
}

std::vector<Figure> sample_figure(const EvaluationReport& report) {
  if (report.examples.empty()) return {};
  return {{.caption = "A sample of test rows",
           .remark = concat("Intervals of ", report.methods.front().name,
                            " in the order of the prediction, with the true value."),
           .chart = {"sample", "/sample/0"},
           .wide = true}};
}

// Of each target that the sample has.
void add_predictions(std::vector<Figure>& figures, const EvaluationReport& report) {
  if (report.examples.empty()) return;
  const std::vector<std::string> names = output_names(report);
  for (size_t k = 0; k <= report.examples.front().others.size(); ++k) {
    const std::string of = names.size() > 1 ? ": " + names[k] : "";
    figures.push_back({.caption = "Predicted against true" + of,
                       .remark = "The same sample of test rows: how far from the line a truth is, "
                                 "is its error.",
                       .chart = {"scatter", concat("/sample/", k)}});
  }
}

std::vector<Figure> interval_figures(const EvaluationReport& report, const Claim& claim) {
  std::vector<Figure> figures;
  add_predictions(figures, report);
  add_importance(figures, report);
  add_curve(figures, claim, report.methods);
  add_lengths(figures, report);
  add_scores(figures, claim, report.methods.front().scores);
  return figures;
}

// Coverage and length of each target alone.
void add_targets(std::vector<Figure>& figures, const Claim& claim, const EvaluationReport& report) {
  const IntervalEvaluation& result = report.methods.front().intervals();
  if (result.outputs < 2) return;
  const std::vector<std::string> names = output_names(report);
  std::vector<GroupCoverage> parts;
  for (size_t k = 0; k < result.outputs; ++k) {
    parts.push_back({names[k], output_coverage(result, k, report.confidence)});
  }
  figures.push_back(
      parts_figure(claim, {.caption = "By target",
                           .remark = "How often the interval of each target alone holds its truth.",
                           .parts = std::move(parts),
                           .at = "/by_output"}));
  if (result.output_error.empty()) return;
  figures.push_back({.caption = "Length by target",
                     .remark = "In standard deviations of the target, so that targets compare; in "
                               "brackets in its own unit.",
                     .chart = {"lengths", "/by_output"}});
}

std::vector<Figure> part_figures(const EvaluationReport& report, const Claim& claim) {
  const IntervalEvaluation& result = report.methods.front().intervals();
  std::vector<Figure> figures;
  add_targets(figures, claim, report);
  figures.push_back(parts_figure(
      claim, {.caption = concat("By thirds of ",
                                result.outputs > 1 ? "the targets' mean" : report.response),
              .remark = "The guarantee holds over all rows; here is what it averages over.",
              .parts = result.response_thirds,
              .at = "/thirds"}));
  if (!result.length_strata.empty()) {
    figures.push_back(parts_figure(
        claim, {.caption = "By length of the interval",
                .remark = "From the shortest to the longest: does a long interval mean more doubt?",
                .parts = strata_parts(result.length_strata, false),
                .at = "/length_strata"}));
  }
  if (!result.groups.empty()) figures.push_back(groups_figure(claim, result.groups));
  add_known_parts(figures, claim, report);
  return figures;
}

std::string parts(const EvaluationReport& report, const Claim& claim) {
  return html_section("parts", "Coverage by part",
                      html_figures(part_figures(report, claim)) +
                          outputs_table(report.methods.front().intervals(), output_names(report)));
}

// "minutes", or "3 targets: a, b, c".
std::string predicted_text(const EvaluationReport& report) {
  const std::vector<std::string> names = output_names(report);
  if (names.size() == 1) return names[0];
  std::string text = format_count(names.size(), "target");
  for (size_t k = 0; k < std::min(names.size(), kMostNamed); ++k) {
    text += concat(k == 0 ? ": " : ", ", names[k]);
  }
  return names.size() > kMostNamed ? text + ", …" : text;
}

}  // namespace

std::string interval_page(const EvaluationReport& report) {
  const Claim claim = claim_of(report);
  const std::string subtitle = concat(format_target(report.level), " prediction intervals for ",
                                      predicted_text(report), ", score ", claim.method);
  const std::vector<Figure> sample = sample_figure(report);
  std::vector<std::string> targets = output_names(report);
  nlohmann::ordered_json data = report_json(report);
  data["sample"] = sample_json(report);
  targets.resize(std::min(targets.size(), data["sample"].size()));
  const std::string rows = sample.empty() ? "" : filter_html(targets) + html_figures(sample);
  return html_page(
      page_title(report, "Prediction intervals"), subtitle,
      concat(headline(report, claim), level_section(report, claim, rows),
             charts_section(interval_figures(report, claim)), parts(report, claim), methods(report),
             conditional_section(report.methods.front(), report.confidence, "length"),
             distribution_section(report.methods.front()), promise_section(claim),
             table_section(report), provenance_section(report.provenance)),
      data);
}

}  // namespace fcp
