#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/interval.h"

#include "apps/report/charts.h"
#include "apps/report/format.h"
#include "apps/report/svg.h"

namespace fcp {
namespace {

constexpr size_t kMostRows = 300;

bool undefined(const Example& example) {
  const IntervalExample& row = example.interval();
  return std::isnan(row.prediction) || std::isnan(row.lower) || std::isnan(row.upper) ||
         std::isnan(row.truth);
}

AxisRange sample_range(std::span<const Example> rows, size_t first_level) {
  std::vector<double> values;
  for (const Example& example : rows) {
    const IntervalExample& row = example.interval();
    values.insert(values.end(), {row.lower, row.upper, row.truth, row.prediction});
    if (first_level >= row.at_levels.size()) continue;
    const Interval& longest = row.at_levels[first_level].interval;
    values.insert(values.end(), {longest.lower, longest.upper});
  }
  return robust_range(values);
}

ChartFrame sample_frame(std::span<const Example> rows, AxisRange range,
                        const std::string& response) {
  size_t misses = 0;
  size_t infinite = 0;
  size_t outside = 0;
  for (const Example& example : rows) {
    const IntervalExample& row = example.interval();
    misses += !example.covered;
    infinite += std::isinf(row.lower) || std::isinf(row.upper);
    outside += row.truth < range.low || row.truth > range.high;
  }
  ChartFrame frame{.title = "Intervals in the order of their prediction",
                   .description = concat(rows.size(), " test rows with their intervals; ", misses,
                                         " of the true values lie outside."),
                   .id = "sample",
                   .x_label = "test rows, in the order of their prediction",
                   .y_label = response,
                   .width = 860,
                   .height = 340};
  frame.legend = {{Mark::kLine, "interval", "interval"},
                  {Mark::kLine, "line prediction", "prediction"},
                  {Mark::kDot, "truth", "truth inside"},
                  {Mark::kCross, "cross miss",
                   concat("truth outside: ", misses, " of ", rows.size(), " rows"), "missed"}};
  if (infinite > 0) {
    frame.legend.push_back(
        {Mark::kNone, "", format_count(infinite) + " infinite, cut at the edge", "own"});
  }
  if (outside > 0) {
    frame.legend.push_back({Mark::kNone, "", format_count(outside) + " truths beyond the axis"});
  }
  return frame;
}

void draw_interval(Chart& chart, const Example& example, double x) {
  const IntervalExample& row = example.interval();
  const std::string tip =
      concat(example.name.empty() ? "" : concat(example.name, ": "), "prediction ",
             format_number(row.prediction), ", interval ", format_number(row.lower), " to ",
             format_number(row.upper), ", truth ", format_number(row.truth), ", ",
             example.covered ? "covered" : "missed");
  chart.line({x, chart.y(row.lower)}, {x, chart.y(row.upper)},
             example.covered ? "interval" : "interval missed", tip);
  if (example.covered) {
    chart.mark(Mark::kDot, {x, chart.y(row.truth)}, 1.6, "truth");
  } else {
    chart.mark(Mark::kCross, {x, chart.y(row.truth)}, 3, "cross miss");
  }
}

}  // namespace

std::vector<Example> drawn_examples(std::span<const Example> rows) {
  std::vector<Example> sorted;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(sorted),
               [](const Example& row) { return !undefined(row); });
  std::stable_sort(sorted.begin(), sorted.end(), [](const Example& a, const Example& b) {
    return a.interval().prediction < b.interval().prediction;
  });
  if (sorted.size() <= kMostRows) return sorted;
  std::vector<Example> thinned;
  for (size_t i = 0; i < kMostRows; ++i) {
    thinned.push_back(sorted[i * (sorted.size() - 1) / (kMostRows - 1)]);
  }
  return thinned;
}

std::string interval_chart(std::span<const Example> drawn, const std::string& response,
                           size_t first_level) {
  const AxisRange range = sample_range(drawn, first_level);
  const auto count = static_cast<double>(std::max<size_t>(1, drawn.size()));
  Chart chart(sample_frame(drawn, range, response), {0, count + 1}, range);
  chart.y_axis(5);
  if (drawn.size() >= 10) chart.x_axis(6);
  std::vector<Point> predictions;
  chart.begin_group("rows");
  for (size_t i = 0; i < drawn.size(); ++i) {
    const double x = chart.x(static_cast<double>(i + 1));
    draw_interval(chart, drawn[i], x);
    predictions.push_back({x, chart.y(drawn[i].interval().prediction)});
  }
  chart.end_group();
  chart.polyline(predictions, "line prediction");
  return chart.finish();
}

std::string prediction_chart(std::span<const Example> drawn, const std::string& response) {
  std::vector<double> values;
  for (const Example& example : drawn) {
    values.insert(values.end(), {example.interval().prediction, example.interval().truth});
  }
  const AxisRange range = robust_range(values);
  ChartFrame frame{.title = "Predicted against true",
                   .description = concat(drawn.size(), " test rows: ", response,
                                         " over its prediction; on the line the two are equal."),
                   .x_label = concat("predicted ", response),
                   .y_label = concat("true ", response)};
  frame.legend = {{Mark::kDot, "truth", "in its interval"},
                  {Mark::kCross, "cross miss", "outside"},
                  {Mark::kLine, "line prediction", "equal"}};
  Chart chart(std::move(frame), range, range);
  chart.y_axis(5);
  chart.x_axis(5);
  const std::vector<Point> equal = {{chart.x(range.low), chart.y(range.low)},
                                    {chart.x(range.high), chart.y(range.high)}};
  chart.polyline(equal, "line prediction");
  for (const Example& example : drawn) {
    const IntervalExample& row = example.interval();
    const Point at{chart.x(row.prediction), chart.y(row.truth)};
    const std::string tip =
        concat("predicted ", format_number(row.prediction), ", true ", format_number(row.truth));
    chart.mark(example.covered ? Mark::kDot : Mark::kCross, at, example.covered ? 1.8 : 3,
               example.covered ? "truth" : "cross miss", tip);
  }
  return chart.finish();
}

}  // namespace fcp
