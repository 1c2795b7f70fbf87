// Charts of experiments: methods side by side over data sets, and curves over a number, on plain or
// logarithmic axes. Each is one <svg> element as svg.h describes it; what is not finite (or, on a
// logarithmic axis, not positive) is not drawn. Tested by tests/report/result_charts_test.cc.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace fcp {

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

std::string comparison_chart(const Comparison& comparison);

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

std::string curve_chart(const CurveChart& chart);

}  // namespace fcp
