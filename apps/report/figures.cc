#include "apps/report/figures.h"

#include <algorithm>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/conformal/rank.h"

#include "apps/report/format.h"

namespace fcp {
namespace {

std::string scores_remark(const Claim& claim) {
  const size_t n = claim.calibration_rows;
  const size_t k = conformal_rank(claim.level, n);
  if (!claim.radius) return "Each row has its own radius, so none is drawn.";
  if (k > n) return "There are too few scores for this α: the radius lies beyond all of them.";
  return concat("A score says how unusual the ", words_for(claim.kind).truth,
                " is for the network. The radius is the score of rank k = ⌈(1 − α)(n + 1)⌉ = ",
                format_count(k), " among n = ", format_count(n),
                "; rows beyond it (outlined) would not be covered.");
}

std::string curve_table(const Claim& claim, std::span<const CurveSeries> series) {
  std::vector<std::string> headers = {"α", "Target"};
  for (const CurveSeries& one : series) headers.push_back(one.name);
  headers.push_back(concat(series.front().name, ", ", format_confidence(claim.confidence)));
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < series.front().points.size(); ++i) {
    const CurvePoint& point = series.front().points[i];
    std::vector<std::string> row = {concat(point.level.value()), format_target(point.level)};
    for (const CurveSeries& one : series) {
      row.push_back(i < one.points.size() ? format_percent(one.points[i].coverage.rate) : "–");
    }
    row.push_back(format_percent_range(point.coverage.lower, point.coverage.upper));
    rows.push_back(std::move(row));
  }
  return html_table(headers, rows);
}

// The radii of usual levels: ranks among the scores.
std::string scores_table(const Claim& claim, std::span<const double> scores) {
  std::vector<double> sorted(scores.begin(), scores.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::vector<std::string>> rows;
  for (const char* text : {"0.5", "0.2", "0.1", "0.05", "0.02", "0.01"}) {
    const Level level = Level::parse(text);
    const size_t k = conformal_rank(level, claim.calibration_rows);
    if (claim.calibration_rows != sorted.size()) break;
    rows.push_back(
        {level.text(), format_count(k), k > sorted.size() ? "∞" : format_number(sorted[k - 1])});
  }
  if (rows.empty()) return "";
  const std::vector<std::string> headers = {"α", "Rank k", "Radius"};
  return html_table(headers, rows);
}

}  // namespace

std::vector<CurveSeries> curves_of(const std::vector<MethodResult>& methods) {
  std::vector<CurveSeries> series;
  for (const MethodResult& method : methods) {
    if (!method.curve.empty()) series.push_back({method.name, method.curve});
  }
  return series;
}

void add_curve(std::vector<Figure>& figures, const Claim& claim,
               std::span<const CurveSeries> series) {
  if (series.empty()) return;
  const bool beta_holds = claim.guaranteed && claim.radius.has_value();
  figures.push_back({.caption = "Coverage at every level",
                     .remark = beta_holds
                                   ? "Zero is the target. The grey band is what luck in drawing "
                                     "the calibration rows explains."
                                   : "Zero is the target.",
                     .chart = coverage_curve_chart(series, beta_holds ? claim.calibration_rows : 0,
                                                   claim.level.value()),
                     .html = curve_table(claim, series)});
}

void add_scores(std::vector<Figure>& figures, const Claim& claim, std::span<const double> scores) {
  if (scores.empty()) return;
  figures.push_back({.caption = "Calibration scores and the radius",
                     .remark = scores_remark(claim),
                     .chart = score_chart(scores, claim.radius),
                     .html = scores_table(claim, scores)});
}

Figure parts_figure(const Claim& claim, PartsFigure figure) {
  std::vector<std::vector<std::string>> rows;
  for (const GroupCoverage& part : figure.parts) {
    rows.push_back({part.name, format_count(part.coverage.rows), format_percent(part.coverage.rate),
                    format_percent_range(part.coverage.lower, part.coverage.upper)});
  }
  const std::vector<std::string> headers = {"Part", "Rows", "Coverage",
                                            format_confidence(claim.confidence)};
  return {.caption = figure.caption,
          .remark = std::move(figure.remark),
          .chart = coverage_parts_chart({.title = figure.caption,
                                         .parts = std::move(figure.parts),
                                         .level = claim.level,
                                         .most = figure.most}),
          .html = html_table(headers, rows)};
}

void add_known_parts(std::vector<Figure>& figures, const Claim& claim,
                     const EvaluationReport& report) {
  if (!report.over_time.empty()) {
    figures.push_back(parts_figure(
        claim, {.caption = "Over time",
                .remark = "The test rows in order of time. A coverage that falls says that later "
                          "rows are no longer like those that calibrate.",
                .parts = report.over_time}));
  }
  for (const ColumnCoverage& column : report.by_column) {
    figures.push_back(
        parts_figure(claim, {.caption = concat("By ", column.column),
                             .remark = "One of the columns in whose categories coverage differs "
                                       "most; some of it is luck.",
                             .parts = column.parts}));
  }
}

Figure groups_figure(const Claim& claim, const std::vector<GroupCoverage>& groups) {
  const bool promised = std::all_of(groups.begin(), groups.end(), [&](const GroupCoverage& part) {
    return std::any_of(claim.groups.begin(), claim.groups.end(),
                       [&](const GuaranteedGroup& group) { return group.name == part.name; });
  });
  return parts_figure(claim,
                      {.caption = "By group",
                       .remark = concat("Coverage in each of the groups given with the data. The "
                                        "guarantee ",
                                        promised && claim.guaranteed ? "holds for each group alone."
                                                                     : "does not hold group by "
                                                                       "group."),
                       .parts = groups});
}

}  // namespace fcp
