#include "apps/experiments/set_tables.h"

#include <nlohmann/json.hpp>

#include "apps/experiments/result_rows.h"
#include "apps/report/charts.h"

namespace fcp {

ResultTable coverage_table(const Json& rows) {
  ResultTable table{
      "Coverage and length of every method",
      {"set", "method", "detection %", "interval coverage %", "worst third %", "length", ""},
      {},
      true};
  for (const RowGroup& group : group_rows(rows, {"set", "method"})) {
    const Spread detection = group.spread("detection_coverage");
    table.rows.push_back(
        {group.key[0], group.key[1], detection.count > 0 ? fixed_text(100 * detection.mean, 1) : "",
         percent_text(group.spread("coverage")), percent_text(group.spread("worst_third_coverage")),
         spread_text(group.spread("length")), group.failed_text()});
  }
  return table;
}

Figure relative_length_figure(const Json& rows, const std::string& base,
                              const std::vector<std::string>& methods) {
  const std::vector<RowGroup> groups = group_rows(rows, {"set", "method"});
  Comparison chart{"Length divided by that of " + base,
                   "length / length of " + base,
                   values_of(rows, "set"),
                   {},
                   1.0};
  for (const std::string& method : methods) {
    ComparisonSeries series{method, {}, {}};
    for (const std::string& set : chart.rows) {
      const Spread unit = spread_at(groups, {set, base}, "length");
      const Spread length = spread_at(groups, {set, method}, "length");
      series.values.push_back(length.mean / unit.mean);
      series.deviations.push_back(length.deviation / unit.mean);
    }
    chart.series.push_back(series);
  }
  return {.caption = chart.title,
          .remark = "Left of the dashed line is shorter. Whiskers: the deviation over seeds.",
          .chart = comparison_chart(chart),
          .wide = true};
}

Figure coverage_figure(const Json& rows, const std::vector<std::string>& methods,
                       const Level& level) {
  const std::vector<RowGroup> groups = group_rows(rows, {"set", "method"});
  Comparison chart{"Coverage of the printed intervals",
                   "share of test rows in their interval",
                   values_of(rows, "set"),
                   {},
                   1 - level.value()};
  for (const std::string& method : methods) {
    ComparisonSeries series{method, {}, {}};
    for (const std::string& set : chart.rows) {
      const Spread coverage = spread_at(groups, {set, method}, "coverage");
      series.values.push_back(coverage.mean);
      series.deviations.push_back(coverage.deviation);
    }
    chart.series.push_back(series);
  }
  return {.caption = chart.title,
          .remark = "The dashed line is the target.",
          .chart = comparison_chart(chart),
          .wide = true};
}

}  // namespace fcp
