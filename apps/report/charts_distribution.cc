#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/base/infinity.h"

#include "apps/report/charts.h"
#include "apps/report/format.h"
#include "apps/report/svg.h"

namespace fcp {
namespace {

constexpr size_t kMostBins = 36;

struct Histogram {
  AxisRange range;
  std::vector<size_t> counts;
  size_t beyond = 0;  // finite, but outside the range
  size_t infinite = 0;

  double edge(size_t i) const {
    const double share = static_cast<double>(i) / static_cast<double>(counts.size());
    return range.low * (1 - share) + range.high * share;
  }
};

size_t bins_for(size_t values) {
  return std::clamp<size_t>(static_cast<size_t>(2 * std::sqrt(static_cast<double>(values))), 8,
                            kMostBins);
}

Histogram histogram_of(std::span<const double> values, AxisRange range) {
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

void include(AxisRange& range, double value) {
  if (!std::isfinite(value)) return;
  range.low = std::min(range.low, value);
  range.high = std::max(range.high, value);
}

// About a thousand of the sizes, and at least one of each: enough to find the range of all.
std::vector<double> typical_sizes(std::span<const size_t> rows_of_size) {
  const size_t rows = std::accumulate(rows_of_size.begin(), rows_of_size.end(), size_t{0});
  const size_t step = 1 + rows / 1000;
  std::vector<double> sizes;
  for (size_t size = 0; size < rows_of_size.size(); ++size) {
    sizes.insert(sizes.end(), (rows_of_size[size] + step - 1) / step, static_cast<double>(size));
  }
  return sizes;
}

// One bin a size, or several sizes a bin where there are too many. Bins end at halves, so that
// whole numbers stand under the middle of their bar.
Histogram size_histogram(std::span<const size_t> rows_of_size, std::span<const MethodMean> means) {
  AxisRange range = robust_range(typical_sizes(rows_of_size), 0);
  for (const MethodMean& mean : means) include(range, mean.mean);
  // At least five sizes: a single bar should not fill the chart.
  const size_t classes = rows_of_size.empty() ? 0 : rows_of_size.size() - 1;
  const auto low_end = static_cast<size_t>(std::max(0.0, std::floor(range.low)));
  const size_t last =
      std::min(classes, std::max(static_cast<size_t>(std::ceil(range.high)), low_end + 4));
  const size_t first = std::min(low_end, last - std::min<size_t>(last, 4));
  const size_t sizes_of_bin = (last - first) / kMostBins + 1;
  const size_t bins = (last - first) / sizes_of_bin + 1;
  const double low = static_cast<double>(first) - 0.5;
  Histogram histogram{{low, low + static_cast<double>(bins * sizes_of_bin)},
                      std::vector<size_t>(bins, 0)};
  for (size_t size = 0; size < rows_of_size.size(); ++size) {
    const bool inside = size >= first && size < first + bins * sizes_of_bin;
    (inside ? histogram.counts[(size - first) / sizes_of_bin] : histogram.beyond) +=
        rows_of_size[size];
  }
  return histogram;
}

AxisRange count_range(const Histogram& histogram) {
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

// What a bar counts, as its tooltip says it: from its edges.
using BinText = std::string (*)(double low, double high);

std::string edges_text(double low, double high) {
  return concat(format_number(low, 3), " to ", format_number(high, 3));
}

// The whole numbers between two edges that lie halfway between such.
std::string sizes_text(double low, double high) {
  return concat("size ", format_sizes({std::ceil(low), std::floor(high), {}}));
}

// A bar is split at `limit`: what lies above it is in the other style.
void draw_bars(Chart& chart, const Histogram& histogram, double limit, BinText text) {
  for (size_t i = 0; i < histogram.counts.size(); ++i) {
    const size_t count = histogram.counts[i];
    if (count == 0) continue;
    const double low = chart.x(histogram.edge(i)) + 0.5;
    const double high = chart.x(histogram.edge(i + 1)) - 0.5;
    const double split = std::clamp(chart.x(limit), low, high);
    const double top = chart.y(static_cast<double>(count));
    const double height = chart.bottom() - top;
    const std::string tip =
        concat(text(histogram.edge(i), histogram.edge(i + 1)), ": ", format_count(count));
    if (split > low) chart.rectangle({low, top}, split - low, height, "bar", tip);
    if (split < high) chart.rectangle({split, top}, high - split, height, "bar outside", tip);
  }
}

void vertical(Chart& chart, double value, const std::string& style, const std::string& tip) {
  const double at = chart.x(value);
  chart.line({at, chart.top() - 4}, {at, chart.bottom()}, style, tip);
}

// A histogram with a line at the mean of each method.
std::string chart_with_means(ChartFrame frame, const Histogram& histogram,
                             std::span<const MethodMean> means, int ticks, BinText text) {
  const auto style = [](size_t i) { return concat("mean series", std::min<size_t>(i, 3)); };
  for (size_t i = 0; i < means.size(); ++i) {
    frame.legend.push_back({Mark::kLine, style(i),
                            concat("mean ", means[i].name, " ", format_number(means[i].mean, 3))});
  }
  note_missing(frame.legend, histogram);
  Chart chart(std::move(frame), histogram.range, count_range(histogram));
  chart.y_axis(4);
  draw_bars(chart, histogram, kInfinity, text);
  chart.x_axis(ticks);
  for (size_t i = means.size(); i-- > 0;) {
    if (!std::isfinite(means[i].mean)) continue;
    vertical(chart, means[i].mean, style(i),
             concat("mean of ", means[i].name, ": ", format_number(means[i].mean)));
  }
  return chart.finish();
}

}  // namespace

std::string length_chart(std::span<const double> lengths, std::span<const MethodMean> means) {
  AxisRange range = robust_range(lengths, 0);
  for (const MethodMean& mean : means) include(range, mean.mean);
  return chart_with_means(
      {.title = "Lengths of the intervals",
       .description = "Histogram of interval lengths with the mean of each method.",
       .x_label = "length",
       .y_label = "intervals"},
      histogram_of(lengths, range), means, 6, edges_text);
}

std::string size_chart(std::span<const size_t> histogram, std::span<const MethodMean> means) {
  const Histogram sizes = size_histogram(histogram, means);
  // At most one tick a size: between two whole numbers there is nothing to mark.
  const auto ticks = static_cast<int>(std::min(6.0, sizes.range.high - sizes.range.low));
  return chart_with_means(
      {.title = "Sizes of the sets",
       .description = "How many test rows have a set of so many labels, with the mean "
                      "size of each method.",
       .x_label = "labels in the set",
       .y_label = "test rows"},
      sizes, means, ticks, sizes_text);
}

std::string score_chart(std::span<const double> scores, std::optional<double> radius) {
  AxisRange range = robust_range(scores, 0);
  if (radius) include(range, *radius);
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
  draw_bars(chart, histogram, radius.value_or(kInfinity), edges_text);
  chart.x_axis(6);
  if (radius) vertical(chart, *radius, "radius", "radius " + format_number(*radius));
  return chart.finish();
}

}  // namespace fcp
