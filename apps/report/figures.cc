// Charts with the words around them: which chart is drawn from what, and how to read it.
#include <algorithm>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/conformal/quantile.h"

#include "apps/report/results.h"
#include "apps/report/sections.h"

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

// The curves of all methods that have one, the main one first.
std::vector<CurveSeries> curves_of(const std::vector<MethodResult>& methods) {
  std::vector<CurveSeries> series;
  for (const MethodResult& method : methods) {
    if (!method.curve.empty()) series.push_back({method.name, method.curve});
  }
  return series;
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

// A member of an object as JSON pointers write it (RFC 6901).
std::string pointer_token(const std::string& name) {
  std::string token;
  for (const char c : name) token += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return token;
}

}  // namespace

void add_curve(std::vector<Figure>& figures, const Claim& claim,
               const std::vector<MethodResult>& methods) {
  const std::vector<CurveSeries> series = curves_of(methods);
  if (series.empty()) return;
  const bool beta_holds = claim.guaranteed && claim.radius.has_value();
  figures.push_back({.caption = "Coverage at every level",
                     .remark = beta_holds
                                   ? "Zero is the target. The grey band is what luck in drawing "
                                     "the calibration rows explains."
                                   : "Zero is the target.",
                     .chart = {"curve", ""},
                     .html = curve_table(claim, series)});
}

void add_scores(std::vector<Figure>& figures, const Claim& claim, std::span<const double> scores) {
  if (scores.empty()) return;
  figures.push_back({.caption = "Calibration scores and the radius",
                     .remark = scores_remark(claim),
                     .chart = score_chart(scores, claim.radius),
                     .html = scores_table(claim, scores)});
}

void add_importance(std::vector<Figure>& figures, const EvaluationReport& report) {
  if (!report.importance || report.importance->columns.empty()) return;
  const char* size = report.importance->labels ? "size of the set" : "length of the interval";
  figures.push_back({.caption = "Which columns matter",
                     .remark = concat("How far the prediction and the ", size, " change where a ",
                                      "column's values are shuffled among the rows. Columns that "
                                      "tell the same share their importance; none of it is a "
                                      "cause."),
                     .chart = {"importance", "/importance"}});
}

Figure parts_figure(const Claim& claim, const PartsFigure& figure) {
  std::vector<std::vector<std::string>> rows;
  for (const GroupCoverage& part : figure.parts) {
    rows.push_back({part.name, format_count(part.coverage.rows), format_percent(part.coverage.rate),
                    format_percent_range(part.coverage.lower, part.coverage.upper)});
  }
  const std::vector<std::string> headers = {"Part", "Rows", "Coverage",
                                            format_confidence(claim.confidence)};
  return {.caption = figure.caption,
          .remark = figure.remark,
          .chart = {figure.worst ? "worst_parts" : "parts", figure.at},
          .html = html_table(headers, rows)};
}

std::vector<GroupCoverage> strata_parts(std::span<const Stratum> strata, bool sizes) {
  std::vector<GroupCoverage> parts;
  for (const Stratum& stratum : strata) {
    parts.push_back({format_stratum(stratum, sizes), stratum.coverage});
  }
  return parts;
}

void add_known_parts(std::vector<Figure>& figures, const Claim& claim,
                     const EvaluationReport& report) {
  if (!report.over_time.empty()) {
    figures.push_back(parts_figure(
        claim, {.caption = "Over time",
                .remark = "The test rows in order of time. A coverage that falls says that later "
                          "rows are no longer like those that calibrate.",
                .parts = report.over_time,
                .at = "/over_time"}));
  }
  for (const ColumnCoverage& column : report.by_column) {
    figures.push_back(
        parts_figure(claim, {.caption = concat("By ", column.column),
                             .remark = "One of the columns in whose categories coverage differs "
                                       "most; some of it is luck.",
                             .parts = column.parts,
                             .at = "/by_column/" + pointer_token(column.column)}));
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
                       .parts = groups,
                       .at = "/groups"});
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
  const std::vector<Figure> figures = {
      {.caption = "Where the truth falls in its distribution",
       .remark = "Even bars: the distributions are as wide as the truth is uncertain. Low bars at "
                 "the ends: too wide; high ones: too narrow.",
       .chart = {"pit", "/distribution"},
       .html = html_table(bin_headers, bins)},
      {.caption = "The chance to exceed a threshold",
       .remark = "On the line it happens as often as was predicted.",
       .chart = {"reliability", "/distribution/above"},
       .html = html_table(event_headers, thresholds)}};
  return html_section(
      "distribution", "Predictive distributions",
      html_paragraph(concat("CRPS ", format_number(found.crps), " on ",
                            format_count(found.rows, "test row"),
                            ": the mean error of the distributions, in the target's unit. Where "
                            "they are calibrated, each of the ten bars lies between ",
                            format_number(found.pit_low), " and ", format_number(found.pit_high),
                            " rows nineteen times in twenty.")) +
          html_figures(figures));
}

std::string probability_section(const MethodResult& method) {
  if (!method.probabilities) return "";
  const ProbabilityEvaluation& found = *method.probabilities;
  const bool answer = found.of == "answer";
  std::vector<std::vector<std::string>> rows;
  for (const ReliabilityBin& bin : found.reliability) {
    rows.push_back({concat(format_percent(bin.from, 0), " to ", format_percent(bin.to, 0)),
                    format_count(bin.rows), format_percent(bin.predicted),
                    format_percent(bin.observed), format_percent_range(bin.low, bin.high)});
  }
  const std::vector<std::string> headers = {"Probability", "Rows", "Predicted", "Observed",
                                            "Chance (95 %)"};
  const auto tiles = [](const std::string& of, const ProbabilityFigures& figures) {
    return html_tile("Log loss" + of, format_number(figures.log_loss), "less is better") +
           html_tile("Calibration error (ECE)" + of, format_percent(figures.ece, 2),
                     "mean distance from the line");
  };
  std::string html = "<div class=\"tiles\">\n" + tiles("", found.figures);
  if (found.softmax) html += tiles(" of the network", *found.softmax);
  html += "</div>\n";
  if (found.mean_gap) {
    html += html_paragraph(concat("Venn-Abers gives two probabilities, one of which is calibrated; "
                                  "they differ by ",
                                  format_percent(*found.mean_gap, 2), " in the mean."),
                           "verdict");
  }
  const std::vector<Figure> figures = {
      {.caption = "Are the probabilities true?",
       .remark = concat("Of the rows to which ", answer ? "the answer" : found.of,
                        " is given this probability, how many ",
                        answer ? "are answered rightly" : "are of this class",
                        ". On the line the two are equal; whiskers show what chance explains."),
       .chart = {"reliability", "/probabilities"},
       .html = html_table(headers, rows)}};
  return html_section(
      "probabilities",
      concat("Class probabilities (", found.method, ", ", format_count(found.rows, "row"), ")"),
      html + "<div class=\"below\">" + html_figures(figures) + "</div>\n");
}

}  // namespace fcp
