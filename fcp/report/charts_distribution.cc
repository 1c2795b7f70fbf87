#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/conformal/region.h"
#include "fcp/report/charts.h"
#include "fcp/report/format.h"
#include "fcp/report/svg.h"

namespace fcp {
namespace {

constexpr size_t kMostRows = 300;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Histogram {
  Range range;
  std::vector<size_t> counts;
  size_t beyond = 0;  // finite, but outside the range
  size_t infinite = 0;

  double edge(size_t i) const {
    const double share = static_cast<double>(i) / static_cast<double>(counts.size());
    return range.low * (1 - share) + range.high * share;
  }
};

size_t bins_for(size_t values) {
  return std::clamp<size_t>(static_cast<size_t>(2 * std::sqrt(static_cast<double>(values))), 8, 36);
}

Histogram histogram_of(std::span<const double> values, Range range) {
  Histogram histogram{range, std::vector<size_t>(bins_for(values.size()), 0)};
  const auto bins = static_cast<double>(histogram.counts.size());
  for (double value : values) {
    if (std::isnan(value)) continue;
    if (std::isinf(value)) {
      ++histogram.infinite;
    } else if (value < range.low || value > range.high) {
      ++histogram.beyond;
    } else {
      const double share = (value / 2 - range.low / 2) / (range.high / 2 - range.low / 2);
      ++histogram.counts[static_cast<size_t>(std::min(share * bins, bins - 1))];
    }
  }
  return histogram;
}

Range count_range(const Histogram& histogram) {
  const size_t most = *std::max_element(histogram.counts.begin(), histogram.counts.end());
  return {0, std::max(1.0, 1.06 * static_cast<double>(most))};
}

void note_missing(std::vector<LegendEntry>& legend, const Histogram& histogram) {
  if (histogram.infinite > 0) {
    legend.push_back({Mark::kNone, "", format_count(histogram.infinite) + " infinite, not drawn"});
  }
  if (histogram.beyond > 0) {
    legend.push_back({Mark::kNone, "", format_count(histogram.beyond) + " beyond the axis"});
  }
}

// A bar is split at `limit`: what lies above it is in the other style.
void draw_bars(Chart& chart, const Histogram& histogram, double limit) {
  for (size_t i = 0; i < histogram.counts.size(); ++i) {
    const size_t count = histogram.counts[i];
    if (count == 0) continue;
    const double low = chart.x(histogram.edge(i)) + 0.5;
    const double high = chart.x(histogram.edge(i + 1)) - 0.5;
    const double split = std::clamp(chart.x(limit), low, high);
    const double top = chart.y(static_cast<double>(count));
    const double height = chart.bottom() - top;
    const std::string tip =
        concat(format_number(histogram.edge(i), 3), " to ", format_number(histogram.edge(i + 1), 3),
               ": ", format_count(count));
    if (split > low) chart.rectangle({low, top}, split - low, height, "bar", tip);
    if (split < high) chart.rectangle({split, top}, high - split, height, "bar outside", tip);
  }
}

void vertical(Chart& chart, double value, const std::string& style, const std::string& tip) {
  const double at = chart.x(value);
  chart.line({at, chart.top() - 4}, {at, chart.bottom()}, style, tip);
}

// ---- intervals --------------------------------------------------------------------------------

std::vector<SampleRow> drawn_rows(std::span<const SampleRow> rows) {
  std::vector<SampleRow> sorted;
  for (const SampleRow& row : rows) {
    const bool undefined = std::isnan(row.prediction) || std::isnan(row.lower) ||
                           std::isnan(row.upper) || std::isnan(row.truth);
    if (!undefined) sorted.push_back(row);
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const SampleRow& a, const SampleRow& b) {
    return a.prediction < b.prediction;
  });
  if (sorted.size() <= kMostRows) return sorted;
  std::vector<SampleRow> thinned;
  for (size_t i = 0; i < kMostRows; ++i) {
    thinned.push_back(sorted[i * (sorted.size() - 1) / (kMostRows - 1)]);
  }
  return thinned;
}

bool is_covered(const SampleRow& row) { return Interval{row.lower, row.upper}.contains(row.truth); }

Range sample_range(std::span<const SampleRow> rows) {
  std::vector<double> values;
  for (const SampleRow& row : rows) {
    values.insert(values.end(), {row.lower, row.upper, row.truth, row.prediction});
  }
  return robust_range(values);
}

ChartFrame sample_frame(std::span<const SampleRow> rows, Range range, const std::string& response) {
  size_t misses = 0;
  size_t infinite = 0;
  size_t outside = 0;
  for (const SampleRow& row : rows) {
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

void draw_interval(Chart& chart, const SampleRow& row, double x) {
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

std::string length_chart(std::span<const double> lengths, std::span<const MeanLength> means) {
  std::vector<double> values(lengths.begin(), lengths.end());
  Range range = robust_range(values, 0);
  for (const MeanLength& mean : means) {
    if (!std::isfinite(mean.mean)) continue;
    range.low = std::min(range.low, mean.mean);
    range.high = std::max(range.high, mean.mean);
  }
  const Histogram histogram = histogram_of(lengths, range);
  ChartFrame frame{.title = "Lengths of the intervals",
                   .description = "Histogram of interval lengths with the mean of each method.",
                   .x_label = "length",
                   .y_label = "intervals"};
  for (size_t i = 0; i < means.size(); ++i) {
    frame.legend.push_back({Mark::kLine, concat("mean series", std::min<size_t>(i, 3)),
                            concat("mean ", means[i].name, " ", format_number(means[i].mean, 3))});
  }
  note_missing(frame.legend, histogram);
  Chart chart(frame, range, count_range(histogram));
  chart.y_axis(4);
  draw_bars(chart, histogram, kInfinity);
  chart.x_axis(6);
  for (size_t i = means.size(); i-- > 0;) {
    if (!std::isfinite(means[i].mean)) continue;
    vertical(chart, means[i].mean, concat("mean series", std::min<size_t>(i, 3)),
             concat("mean length of ", means[i].name, ": ", format_number(means[i].mean)));
  }
  return chart.finish();
}

std::string score_chart(std::span<const double> scores, std::optional<double> radius) {
  Range range = robust_range(scores, 0);
  if (radius && std::isfinite(*radius)) {
    range.low = std::min(range.low, *radius);
    range.high = std::max(range.high, *radius);
  }
  const Histogram histogram = histogram_of(scores, range);
  ChartFrame frame{.title = "Calibration scores and the radius",
                   .description =
                       "Histogram of the calibration scores; the radius is their "
                       "conformal quantile.",
                   .x_label = "score",
                   .y_label = "calibration rows"};
  if (radius) {
    frame.legend.push_back({Mark::kLine, "radius",
                            concat("radius ", format_number(*radius, 4),
                                   *radius == kInfinity ? ": beyond every score" : "")});
  }
  note_missing(frame.legend, histogram);
  Chart chart(frame, range, count_range(histogram));
  chart.y_axis(4);
  draw_bars(chart, histogram, radius.value_or(kInfinity));
  chart.x_axis(6);
  if (radius) vertical(chart, *radius, "radius", "radius " + format_number(*radius));
  return chart.finish();
}

std::string interval_chart(std::span<const SampleRow> rows, const std::string& response) {
  const std::vector<SampleRow> drawn = drawn_rows(rows);
  const Range range = sample_range(drawn);
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
