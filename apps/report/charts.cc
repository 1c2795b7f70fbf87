#include "apps/report/charts.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "apps/report/json.h"

namespace fcp {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostBins = 36;
constexpr size_t kMostRows = 300;
constexpr double kLargest = 1e300;  // of a range: room around it must not overflow
constexpr double kSmallest = 1e-300;
constexpr double kTailShare = 0.01;
constexpr double kTailFactor = 3;    // how much wider the range must be with its tails to lose them
constexpr double kDrawnFrom = 0.05;  // α: intervals of smaller ones may leave the chart of rows

AxisRange padded(AxisRange range, double padding) {
  // Values that differ by rounding only are one value.
  const double size = std::max(std::abs(range.low), std::abs(range.high));
  if (size <= kSmallest || range.high / 2 - range.low / 2 <= 0.5e-5 * size) {
    const double room = size > kSmallest ? 0.05 * size : 0.5;
    return {range.low - room, range.high + room};
  }
  const double room = 2 * padding * (range.high / 2 - range.low / 2);
  return {range.low - room, range.high + room};
}

void include(AxisRange& range, double value) {
  if (!std::isfinite(value)) return;
  range.low = std::min(range.low, value);
  range.high = std::max(range.high, value);
}

// ---- histograms -------------------------------------------------------------------------------

struct Histogram {
  AxisRange range;
  std::vector<size_t> counts;
  size_t beyond = 0;  // finite, but outside the range
  size_t infinite = 0;
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
      // The halves keep a range of the widest doubles from overflowing.
      const double share = (value / 2 - range.low / 2) / (range.high / 2 - range.low / 2);
      ++histogram.counts[static_cast<size_t>(std::min(share * bins, bins - 1))];
    }
  }
  return histogram;
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

Json histogram_json(const Histogram& histogram, const char* x, const char* y) {
  return {{"x", x},
          {"y", y},
          {"low", histogram.range.low},
          {"high", histogram.range.high},
          {"counts", histogram.counts},
          {"beyond", histogram.beyond},
          {"infinite", histogram.infinite}};
}

void add_means(Json& data, std::span<const MethodMean> means) {
  for (const MethodMean& mean : means) {
    data["means"].push_back({{"method", mean.name}, {"mean", json_number(mean.mean)}});
  }
}

// ---- rows -------------------------------------------------------------------------------------

const IntervalExample& output_of(const Example& example, size_t output) {
  return output == 0 ? example.interval() : example.others[output - 1];
}

bool undefined(const Example& example) {
  const IntervalExample& row = example.interval();
  return std::isnan(row.prediction) || std::isnan(row.lower) || std::isnan(row.upper) ||
         std::isnan(row.truth);
}

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

// With six digits: the page shows four.
Json short_number(double value) {
  if (!std::isfinite(value)) return json_number(value);
  char text[32];
  const auto end =
      std::to_chars(text, text + sizeof(text), value, std::chars_format::general, 6).ptr;
  std::from_chars(text, end, value);
  return value;
}

Json row_json(const std::string& name, const IntervalExample& row, bool covered) {
  Json json = {{"row", name},
               {"prediction", short_number(row.prediction)},
               {"truth", short_number(row.truth)}};
  std::string in;
  for (const IntervalAtLevel& at : row.at_levels) {
    in += at.covered ? '1' : '0';
    json["lower"].push_back(short_number(at.interval.lower));
    json["upper"].push_back(short_number(at.interval.upper));
  }
  if (row.at_levels.empty()) {
    json["lower"].push_back(short_number(row.lower));
    json["upper"].push_back(short_number(row.upper));
  }
  json["covered"] = in.empty() ? (covered ? "1" : "0") : in;
  return json;
}

Json range_json(const AxisRange& range) { return {range.low, range.high}; }

Json output_sample(const EvaluationReport& report, size_t output, const std::string& name) {
  const std::vector<LevelResult>& levels = report.methods.front().levels;
  const auto drawn = static_cast<size_t>(
      std::find_if(levels.begin(), levels.end(),
                   [](const LevelResult& at) { return at.level.value() >= kDrawnFrom; }) -
      levels.begin());
  Json json = {{"name", name}, {"rows", Json::array()}};
  std::vector<double> truths, ends;
  std::vector<Example> examples(report.examples);
  for (Example& example : examples) {
    if (output == 0) continue;
    // Of outputs after the first the row is covered where the output itself is.
    const IntervalExample own = output_of(example, output);
    example.covered = own.lower <= own.truth && own.truth <= own.upper;
    example.region = own;
  }
  for (const Example& example : drawn_examples(examples)) {
    const IntervalExample& row = example.interval();
    json["rows"].push_back(row_json(example.name, row, example.covered));
    truths.insert(truths.end(), {row.prediction, row.truth});
    ends.insert(ends.end(), {row.lower, row.upper, row.truth, row.prediction});
    if (drawn >= row.at_levels.size()) continue;
    const Interval& longest = row.at_levels[drawn].interval;
    ends.insert(ends.end(), {longest.lower, longest.upper});
  }
  json["interval_axis"] = range_json(robust_range(ends));
  json["truth_axis"] = range_json(robust_range(truths));
  return json;
}

}  // namespace

AxisRange robust_range(std::span<const double> values, double padding) {
  std::vector<double> sorted;
  for (double value : values) {
    if (std::isfinite(value)) sorted.push_back(std::clamp(value, -kLargest, kLargest));
  }
  std::sort(sorted.begin(), sorted.end());
  if (sorted.empty()) return {0, 1};
  const auto tail = static_cast<size_t>(kTailShare * static_cast<double>(sorted.size()));
  const AxisRange whole{sorted.front(), sorted.back()};
  const AxisRange core{sorted[tail], sorted[sorted.size() - 1 - tail]};
  const double core_width = core.high / 2 - core.low / 2;
  const bool heavy = core_width > 0 && whole.high / 2 - whole.low / 2 > kTailFactor * core_width;
  return padded(heavy ? core : whole, padding);
}

ChartData length_chart(std::span<const double> lengths, std::span<const MethodMean> means) {
  AxisRange range = robust_range(lengths, 0);
  for (const MethodMean& mean : means) {
    include(range, std::clamp(mean.mean, -kLargest, kLargest));
  }
  Json data = histogram_json(histogram_of(lengths, range), "length", "intervals");
  add_means(data, means);
  return {"histogram", std::move(data)};
}

ChartData size_chart(std::span<const size_t> rows_of_size, std::span<const MethodMean> means) {
  Json data = histogram_json(size_histogram(rows_of_size, means), "labels in the set", "test rows");
  data["whole"] = true;
  add_means(data, means);
  return {"histogram", std::move(data)};
}

ChartData score_chart(std::span<const double> scores, std::optional<double> radius) {
  AxisRange range = robust_range(scores, 0);
  if (radius) include(range, std::clamp(*radius, -kLargest, kLargest));
  Json data = histogram_json(histogram_of(scores, range), "score", "calibration rows");
  if (radius) data["radius"] = json_number(*radius);
  return {"histogram", std::move(data)};
}

nlohmann::ordered_json sample_json(const EvaluationReport& report) {
  Json json = Json::array();
  const std::vector<std::string> names = output_names(report);
  const size_t others = report.examples.empty() ? 0 : report.examples.front().others.size();
  for (size_t i = 0; i <= others && !report.examples.empty(); ++i) {
    json.push_back(output_sample(report, i, names.at(i)));
  }
  return json;
}

std::string covered_levels(const Example& example, size_t levels) {
  const std::vector<LabelAtLevels>& labels = example.labels().at_levels;
  if (labels.empty()) return example.covered ? "1" : "0";
  const auto truth = std::find_if(labels.begin(), labels.end(), [&](const LabelAtLevels& label) {
    return label.name == example.labels().truth;
  });
  const size_t covered = truth == labels.end() ? 0 : truth->last + 1;
  return std::string(covered, '1') + std::string(levels - std::min(levels, covered), '0');
}

// ---- experiments ------------------------------------------------------------------------------

ChartData coverage_curve_chart(std::span<const CurveSeries> series, size_t calibration_rows) {
  Json data = {{"calibration_rows", calibration_rows}, {"others", Json::array()}};
  for (const CurveSeries& one : series) {
    const bool main = &one == &series.front();
    Json curve = {{"method", one.name},
                  {"curve", curve_json(one.points, main ? calibration_rows : 0)}};
    if (main) {
      data.update(curve);
    } else {
      data["others"].push_back(std::move(curve));
    }
  }
  return {"curve", std::move(data)};
}

ChartData comparison_chart(const Comparison& comparison) {
  Json data = {{"x", comparison.x_label}, {"rows", comparison.rows}, {"series", Json::array()}};
  const auto numbers = [](const std::vector<double>& values) {
    Json list = Json::array();
    for (const double value : values) list.push_back(json_number(value));
    return list;
  };
  for (const ComparisonSeries& series : comparison.series) {
    Json one = {{"name", series.name}, {"values", numbers(series.values)}};
    if (!series.deviations.empty()) one["deviations"] = numbers(series.deviations);
    data["series"].push_back(std::move(one));
  }
  if (comparison.reference) data["reference"] = json_number(*comparison.reference);
  return {"comparison", std::move(data)};
}

ChartData curve_chart(const CurveChart& chart) {
  Json data = {{"x", chart.x_label}, {"y", chart.y_label}, {"logarithmic", chart.logarithmic}};
  data["lines"] = Json::array();
  for (const CurveLine& line : chart.lines) {
    Json points = Json::array();
    for (const PlotPoint& point : line.points) {
      points.push_back({json_number(point.x), json_number(point.y)});
    }
    data["lines"].push_back(
        {{"name", line.name}, {"joined", line.joined}, {"points", std::move(points)}});
  }
  return {"lines", std::move(data)};
}

}  // namespace fcp
