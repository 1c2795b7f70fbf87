// The charts of a report, each one <svg> element as svg.h describes it.
//
// All of them take any data: none, one row, constant, infinite. What cannot be drawn (an infinite
// length, values far out in a tail) is counted in the legend, never dropped in silence.
// Tested by tests/report/charts_test.cc.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fcp/evaluate/measures/evaluation_report.h"
#include "fcp/level.h"

namespace fcp {

// Empirical coverage minus 1 − α over α (the paper's Figure 4). The first series carries its
// confidence band, the others are lines. In grey the range in which the coverage of a predictor
// calibrated on so many rows lies nine times in ten: the 5 % and 95 % quantiles of Beta(k, n + 1 −
// k); left out where calibration_rows = 0.
struct CurveSeries {
  std::string name;
  std::span<const CurvePoint> points;
};
// A `cursor` marks the level of the report, and moves with the page's slider.
std::string coverage_curve_chart(std::span<const CurveSeries> series, size_t calibration_rows,
                                 std::optional<double> cursor = {});

// Coverage of each part with its confidence interval, against the line 1 − α. Parts whose interval
// lies wholly below the line are diamonds. Of more than `most` parts the worst are shown.
struct CoverageParts {
  std::string title;
  std::vector<GroupCoverage> parts;
  Level level = Level(0.1);
  size_t most = 24;
};
std::string coverage_parts_chart(const CoverageParts& chart);

// Lengths of the intervals of the main method, with a line at the mean of each method.
struct MethodMean {
  std::string name;
  double mean = 0;  // of lengths: over the finite intervals
};
std::string length_chart(std::span<const double> lengths, std::span<const MethodMean> means);

// The same for sizes of label sets, from the number of rows whose set has 0, 1, … labels.
std::string size_chart(std::span<const size_t> histogram, std::span<const MethodMean> means);

// Calibration scores, those beyond the radius apart.
std::string score_chart(std::span<const double> scores, std::optional<double> radius);

// The rows that interval_chart draws, in the order of their prediction: of more than 300 rows, 300
// evenly along that order. Rows with a NaN are left out.
std::vector<Example> drawn_examples(std::span<const Example> rows);

// The truth of each row over its prediction, with the line on which the two are equal; misses are
// crosses.
std::string prediction_chart(std::span<const Example> drawn, const std::string& response);

// Intervals with the truth on them, misses marked by a cross, at the level of the report. The axis
// has room for the intervals at the levels from number `first_level` on too.
std::string interval_chart(std::span<const Example> drawn, const std::string& response,
                           size_t first_level = 0);

}  // namespace fcp
