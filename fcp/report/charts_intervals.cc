#include <algorithm>
#include <cmath>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/conformal/interval.h"
#include "fcp/report/charts.h"
#include "fcp/report/format.h"
#include "fcp/report/svg.h"

namespace fcp {
namespace {

constexpr size_t kMostRows = 300;

std::vector<IntervalExample> drawn_rows(std::span<const IntervalExample> rows) {
  std::vector<IntervalExample> sorted;
  for (const IntervalExample& row : rows) {
    const bool undefined = std::isnan(row.prediction) || std::isnan(row.lower) ||
                           std::isnan(row.upper) || std::isnan(row.truth);
    if (!undefined) sorted.push_back(row);
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const IntervalExample& a, const IntervalExample& b) {
                     return a.prediction < b.prediction;
                   });
  if (sorted.size() <= kMostRows) return sorted;
  std::vector<IntervalExample> thinned;
  for (size_t i = 0; i < kMostRows; ++i) {
    thinned.push_back(sorted[i * (sorted.size() - 1) / (kMostRows - 1)]);
  }
  return thinned;
}

bool is_covered(const IntervalExample& row) {
  return Interval{row.lower, row.upper}.contains(row.truth);
}

AxisRange sample_range(std::span<const IntervalExample> rows) {
  std::vector<double> values;
  for (const IntervalExample& row : rows) {
    values.insert(values.end(), {row.lower, row.upper, row.truth, row.prediction});
  }
  return robust_range(values);
}

ChartFrame sample_frame(std::span<const IntervalExample> rows, AxisRange range,
                        const std::string& response) {
  size_t misses = 0;
  size_t infinite = 0;
  size_t outside = 0;
  for (const IntervalExample& row : rows) {
    misses += !is_covered(row);
    infinite += std::isinf(row.lower) || std::isinf(row.upper);
    outside += row.truth < range.low || row.truth > range.high;
  }
  ChartFrame frame{.title = "Intervals in the order of their prediction",
                   .description = concat(rows.size(), " test rows with their intervals; ", misses,
                                         " of the true values lie outside."),
                   .x_label = "test rows, in the order of their prediction",
                   .y_label = response,
                   .width = 860,
                   .height = 340};
  frame.legend = {{Mark::kLine, "interval", "interval"},
                  {Mark::kLine, "line prediction", "prediction"},
                  {Mark::kDot, "truth", "truth inside"},
                  {Mark::kCross, "cross miss",
                   concat("truth outside: ", misses, " of ", rows.size(), " rows")}};
  if (infinite > 0) {
    frame.legend.push_back(
        {Mark::kNone, "", format_count(infinite) + " infinite, cut at the edge"});
  }
  if (outside > 0) {
    frame.legend.push_back({Mark::kNone, "", format_count(outside) + " truths beyond the axis"});
  }
  return frame;
}

void draw_interval(Chart& chart, const IntervalExample& row, double x) {
  const std::string tip =
      concat("prediction ", format_number(row.prediction), ", interval ", format_number(row.lower),
             " to ", format_number(row.upper), ", truth ", format_number(row.truth));
  const bool covered = is_covered(row);
  chart.line({x, chart.y(row.lower)}, {x, chart.y(row.upper)},
             covered ? "interval" : "interval missed", tip);
  if (covered) {
    chart.mark(Mark::kDot, {x, chart.y(row.truth)}, 1.6, "truth", tip);
  } else {
    chart.mark(Mark::kCross, {x, chart.y(row.truth)}, 3, "cross miss", tip);
  }
}

}  // namespace

std::string interval_chart(std::span<const IntervalExample> rows, const std::string& response) {
  const std::vector<IntervalExample> drawn = drawn_rows(rows);
  const AxisRange range = sample_range(drawn);
  const auto count = static_cast<double>(std::max<size_t>(1, drawn.size()));
  Chart chart(sample_frame(drawn, range, response), {0, count + 1}, range);
  chart.y_axis(5);
  if (drawn.size() >= 10) chart.x_axis(6);
  std::vector<Point> predictions;
  for (size_t i = 0; i < drawn.size(); ++i) {
    const double x = chart.x(static_cast<double>(i + 1));
    draw_interval(chart, drawn[i], x);
    predictions.push_back({x, chart.y(drawn[i].prediction)});
  }
  chart.polyline(predictions, "line prediction");
  return chart.finish();
}

}  // namespace fcp
