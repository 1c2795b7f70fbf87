#include "apps/report/interval_figures.h"

#include <algorithm>
#include <utility>

#include "fcp/base/error.h"

#include "apps/report/charts.h"
#include "apps/report/figures.h"
#include "apps/report/format.h"
#include "apps/report/level_section.h"

namespace fcp {
namespace {

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

}  // namespace

std::vector<Figure> sample_figure(const EvaluationReport& report) {
  if (report.examples.empty()) return {};
  const std::vector<Example> drawn = drawn_examples(report.examples);
  return {
      {.caption = "A sample of test rows",
       .remark = concat("Intervals of ", report.methods.front().name,
                        " in the order of the prediction, with the true value."),
       .chart = interval_chart(drawn, report.response, first_drawn_level(report.methods.front())),
       .wide = true}};
}

std::vector<Figure> interval_figures(const EvaluationReport& report) {
  std::vector<Figure> figures;
  const Claim claim = claim_of(report);
  if (!report.examples.empty()) {
    figures.push_back(
        {.caption = "Predicted against true",
         .remark = "The same sample of test rows: how far from the line a truth is, is its error.",
         .chart = prediction_chart(drawn_examples(report.examples), report.response)});
  }
  add_curve(figures, claim, curves_of(report.methods));
  add_lengths(figures, report);
  add_scores(figures, claim, report.methods.front().scores);
  return figures;
}

std::vector<Figure> part_figures(const EvaluationReport& report) {
  const IntervalEvaluation& result = report.methods.front().intervals();
  std::vector<GroupCoverage> thirds = {{"all rows", result.coverage}};
  thirds.insert(thirds.end(), result.response_thirds.begin(), result.response_thirds.end());
  std::vector<GroupCoverage> strata;
  for (const Stratum& stratum : result.length_strata) {
    strata.push_back({format_lengths(stratum), stratum.coverage});
  }
  const Claim claim = claim_of(report);
  std::vector<Figure> figures = {parts_figure(
      claim, {.caption = concat("By thirds of ", report.response),
              .remark = "The guarantee holds over all rows; here is what it averages over.",
              .parts = thirds})};
  if (!strata.empty()) {
    figures.push_back(parts_figure(
        claim, {.caption = "By length of the interval",
                .remark = "From the shortest to the longest: does a long interval mean more doubt?",
                .parts = strata}));
  }
  if (!result.groups.empty()) figures.push_back(groups_figure(claim, result.groups));
  add_known_parts(figures, claim, report);
  return figures;
}

}  // namespace fcp
