// The data of the charts (charts.js draws them): what is counted, thinned or rounded before it goes
// into the page. What a chart needs of the report's JSON, it takes from there.
//
// All of them take any data: none, one row, constant, infinite. What cannot be drawn (an infinite
// length, values far out in a tail) is counted, never dropped in silence.
// Tested by tests/report/charts_test.cc, and in a browser by tests/report/browser_test.cc.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fcp/evaluate/measures/evaluation_report.h"

#include "apps/report/page.h"

namespace fcp {

struct AxisRange {
  double low = 0;
  double high = 1;
};

// From the least to the greatest finite value, widened by this share on both sides, but without the
// outermost values (below 1 %, above 99 %) where those would take up most of the range, as they do
// with heavy tails. A single value gets room around it; no finite value at all gives [0, 1].
AxisRange robust_range(std::span<const double> values, double padding = 0.05);

struct MethodMean {
  std::string name;
  double mean = 0;  // of lengths: over the finite intervals
};

// Histograms {low, high, counts, beyond, infinite, x, y}: of the lengths of the intervals and of
// the sizes of the sets (rows whose set has 0, 1, … labels), with `means` of the methods, and of
// calibration scores, with the `radius`.
ChartData length_chart(std::span<const double> lengths, std::span<const MethodMean> means);
ChartData size_chart(std::span<const size_t> rows_of_size, std::span<const MethodMean> means);
ChartData score_chart(std::span<const double> scores, std::optional<double> radius);

// Test rows for the charts of rows, one entry for each output: {name, rows: [{row, prediction,
// truth, covered, lower, upper}], interval_axis, truth_axis}. `covered`, `lower` and `upper` have
// an entry for each level; numbers have six digits. In the order of the prediction; of more than
// 300 rows, 300 evenly along that order. Rows with a NaN are left out.
nlohmann::ordered_json sample_json(const EvaluationReport& report);

// At which of so many levels an example is covered, as a 1 or 0 for each.
std::string covered_levels(const Example& example, size_t levels);

// ---- experiments ------------------------------------------------------------------------------

// Empirical coverage minus 1 − α over α (the paper's Figure 4), with the range that luck in drawing
// so many calibration rows explains; left out where calibration_rows = 0.
struct CurveSeries {
  std::string name;
  std::span<const CurvePoint> points;
};
ChartData coverage_curve_chart(std::span<const CurveSeries> series, size_t calibration_rows);

// One line a name (a data set), one mark a series, with a whisker as long as its deviation.
struct ComparisonSeries {
  std::string name;
  std::vector<double> values;      // one per row; NaN: none
  std::vector<double> deviations;  // the same, or empty
};

struct Comparison {
  std::string title;
  std::string x_label;
  std::vector<std::string> rows;
  std::vector<ComparisonSeries> series;  // at most four are told apart
  std::optional<double> reference;       // a dashed line
};
ChartData comparison_chart(const Comparison& comparison);

struct PlotPoint {
  double x = 0;
  double y = 0;
};

struct CurveLine {
  std::string name;
  std::vector<PlotPoint> points;
  bool joined = true;  // otherwise marks alone
};

struct CurveChart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<CurveLine> lines;
  bool logarithmic = false;  // both axes
};
ChartData curve_chart(const CurveChart& chart);

}  // namespace fcp
