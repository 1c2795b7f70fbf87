#include "fcp/report/interval_figures.h"

#include <utility>

#include "fcp/base/error.h"
#include "fcp/conformal/rank.h"
#include "fcp/report/charts.h"
#include "fcp/report/format.h"

namespace fcp {
namespace {

using Row = std::vector<std::string>;

std::string stratum_name(const Stratum& stratum) {
  const std::string low = format_number(stratum.low, 3);
  return stratum.high > stratum.low ? low + " – " + format_number(stratum.high, 3) : low;
}

std::string radius_text(const IntervalReport& report) {
  const MethodResult& main = report.methods.front();
  const size_t n = report.calibration_rows;
  const size_t k = conformal_rank(report.level, n);
  if (!main.radius) return "Each row has its own radius, so none is drawn.";
  if (k > n) return "There are too few scores for this α: the radius lies beyond all of them.";
  return concat(
      "A score says how strange the true value is for the network. The radius is the score "
      "of rank k = ⌈(1 − α)(n + 1)⌉ = ",
      format_count(k), " among n = ", format_count(n),
      "; rows beyond it (outlined) would not be covered.");
}

void add_curve(std::vector<Figure>& figures, const IntervalReport& report) {
  std::vector<CurveSeries> series;
  for (const MethodResult& method : report.methods) {
    if (!method.curve.empty()) series.push_back({method.name, method.curve});
  }
  if (series.empty()) return;
  const MethodResult& main = report.methods.front();
  const bool beta_holds = main.guaranteed && main.radius.has_value();
  figures.push_back(
      {.caption = "Coverage at every level",
       .remark = beta_holds ? "Zero is the target. The grey band is what luck in drawing "
                              "the calibration rows explains."
                            : "Zero is the target.",
       .chart = coverage_curve_chart(series, beta_holds ? report.calibration_rows : 0)});
}

void add_lengths(std::vector<Figure>& figures, const IntervalReport& report) {
  const MethodResult& main = report.methods.front();
  if (main.lengths.empty()) return;
  std::vector<MeanLength> means;
  for (const MethodResult& method : report.methods) {
    means.push_back({method.name, method.evaluation.length.mean_finite});
  }
  figures.push_back(
      {.caption = "Lengths of the intervals",
       .remark = concat("Intervals of ", main.name, "; lines mark the mean of each method."),
       .chart = length_chart(main.lengths, means)});
}

void add_scores(std::vector<Figure>& figures, const IntervalReport& report) {
  const MethodResult& main = report.methods.front();
  if (main.scores.empty()) return;
  figures.push_back({.caption = "Calibration scores and the radius",
                     .remark = radius_text(report),
                     .chart = score_chart(main.scores, main.radius)});
}

void add_sample(std::vector<Figure>& figures, const IntervalReport& report) {
  if (report.sample.empty()) return;
  figures.push_back({.caption = "A sample of test rows",
                     .remark = concat("Intervals of ", report.methods.front().name,
                                      " in the order of the prediction, with the true value."),
                     .chart = interval_chart(report.sample, report.response),
                     .wide = true});
}

Figure parts_figure(const IntervalReport& report, const std::string& caption,
                    const std::string& remark, std::vector<GroupCoverage> parts) {
  std::vector<Row> rows;
  for (const GroupCoverage& part : parts) {
    rows.push_back({part.name, format_count(part.coverage.rows), format_percent(part.coverage.rate),
                    format_percent_range(part.coverage.lower, part.coverage.upper)});
  }
  const Row headers = {"Part", "Rows", "Coverage", format_percent(report.confidence, 0) + " CI"};
  return {.caption = caption,
          .remark = remark,
          .chart = coverage_parts_chart({caption, std::move(parts), report.level}),
          .html = html_table(headers, rows)};
}

}  // namespace

std::vector<Figure> interval_figures(const IntervalReport& report) {
  std::vector<Figure> figures;
  add_sample(figures, report);
  add_curve(figures, report);
  add_lengths(figures, report);
  add_scores(figures, report);
  return figures;
}

std::vector<Figure> part_figures(const IntervalReport& report) {
  const IntervalEvaluation& result = report.methods.front().evaluation;
  std::vector<GroupCoverage> thirds = {{"all rows", result.coverage}};
  thirds.insert(thirds.end(), result.response_thirds.begin(), result.response_thirds.end());
  std::vector<GroupCoverage> strata;
  for (const Stratum& stratum : result.length_strata) {
    strata.push_back({stratum_name(stratum), stratum.coverage});
  }
  std::vector<Figure> figures = {
      parts_figure(report, concat("By thirds of ", report.response),
                   "The guarantee is about all rows; here is what it averages over.", thirds)};
  if (!strata.empty()) {
    figures.push_back(parts_figure(
        report, "By length of the interval",
        "From the shortest to the longest: does a long interval mean more doubt?", strata));
  }
  if (!result.groups.empty()) {
    figures.push_back(parts_figure(report, "By group",
                                   "Coverage in each of the groups given with the data. The "
                                   "guarantee does not hold group by group.",
                                   result.groups));
  }
  return figures;
}

}  // namespace fcp
