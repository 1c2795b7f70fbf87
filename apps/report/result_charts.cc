#include "apps/report/result_charts.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "fcp/base/error.h"

#include "apps/report/format.h"
#include "apps/report/svg.h"

namespace fcp {
namespace {

constexpr double kRowHeight = 30;
constexpr std::array<Mark, 4> kMarks = {Mark::kDot, Mark::kDiamond, Mark::kCross, Mark::kDot};

std::string hue_of(size_t series) { return concat("series", std::min<size_t>(series, 3)); }
Mark mark_of(size_t series) { return kMarks[std::min(series, kMarks.size() - 1)]; }

// A cross is drawn by its stroke, the others are filled.
std::string mark_style(size_t series) {
  return concat(mark_of(series) == Mark::kCross ? "cross " : "dot ", hue_of(series));
}

double deviation_at(const ComparisonSeries& series, size_t row) {
  return row < series.deviations.size() && std::isfinite(series.deviations[row])
             ? series.deviations[row]
             : 0;
}

AxisRange comparison_range(const Comparison& comparison) {
  std::vector<double> values;
  if (comparison.reference) values.push_back(*comparison.reference);
  for (const ComparisonSeries& series : comparison.series) {
    for (size_t i = 0; i < series.values.size(); ++i) {
      const double deviation = deviation_at(series, i);
      values.insert(values.end(), {series.values[i] - deviation, series.values[i] + deviation});
    }
  }
  return range_of(values);
}

void draw_comparison_row(Chart& chart, const Comparison& comparison, size_t row, double y) {
  chart.text({chart.left() - 10, y + 4}, "end", "name", comparison.rows[row]);
  const double count = static_cast<double>(comparison.series.size());
  for (size_t i = 0; i < comparison.series.size(); ++i) {
    const ComparisonSeries& series = comparison.series[i];
    const double value = series.values.at(row);
    if (!std::isfinite(value)) continue;
    // The series of one row stand a little below each other, so that equal values both show.
    const double at = y + (static_cast<double>(i) - (count - 1) / 2) * 5.5;
    const double deviation = deviation_at(series, row);
    const std::string tip = concat(comparison.rows[row], ", ", series.name, ": ",
                                   format_number(value), " ± ", format_number(deviation, 2));
    if (deviation > 0) {
      chart.line({chart.x(value - deviation), at}, {chart.x(value + deviation), at},
                 "whisker " + hue_of(i), tip);
    }
    chart.mark(mark_of(i), {chart.x(value), at}, 4, mark_style(i), tip);
  }
}

// The points that can be drawn, in the units of the axes.
std::vector<Point> drawn_points(const CurveLine& line, bool logarithmic) {
  std::vector<Point> points;
  for (const PlotPoint& point : line.points) {
    if (!std::isfinite(point.x) || !std::isfinite(point.y)) continue;
    if (logarithmic && (point.x <= 0 || point.y <= 0)) continue;
    points.push_back(logarithmic ? Point{std::log10(point.x), std::log10(point.y)}
                                 : Point{point.x, point.y});
  }
  return points;
}

std::string power_label(double tick, const std::string&) {
  return format_number(std::pow(10, tick), 2);
}

void draw_curve_line(Chart& chart, const CurveLine& line, const std::vector<Point>& points,
                     size_t series, bool logarithmic) {
  std::vector<Point> places;
  for (const Point& point : points) places.push_back({chart.x(point.x), chart.y(point.y)});
  if (line.joined) chart.polyline(places, "line " + hue_of(series));
  for (size_t i = 0; i < points.size(); ++i) {
    const double x = logarithmic ? std::pow(10, points[i].x) : points[i].x;
    const double y = logarithmic ? std::pow(10, points[i].y) : points[i].y;
    chart.mark(mark_of(series), places[i], 3, mark_style(series),
               concat(line.name, ": ", format_number(x, 3), ", ", format_number(y, 3)));
  }
}

}  // namespace

std::string comparison_chart(const Comparison& comparison) {
  size_t longest = 4;
  for (const std::string& name : comparison.rows) longest = std::max(longest, display_width(name));
  const auto rows = static_cast<double>(comparison.rows.size());
  ChartFrame frame{.title = comparison.title,
                   .description = concat(comparison.title, ", for each of ",
                                         format_count(comparison.rows.size(), "row"), "."),
                   .x_label = comparison.x_label,
                   .width = 860,
                   .height = 78 + kRowHeight * rows,
                   .left = 24 + 6.6 * static_cast<double>(longest)};
  for (size_t i = 0; i < comparison.series.size(); ++i) {
    frame.legend.push_back({mark_of(i), mark_style(i), comparison.series[i].name});
  }
  Chart chart(frame, comparison_range(comparison), {0, 1});
  chart.x_axis(7);
  if (comparison.reference) {
    const double at = chart.x(*comparison.reference);
    chart.line({at, chart.top()}, {at, chart.bottom()}, "target");
  }
  const double height = (chart.bottom() - chart.top()) / std::max(1.0, rows);
  for (size_t row = 0; row < comparison.rows.size(); ++row) {
    const double top = chart.top() + height * static_cast<double>(row);
    if (row > 0) chart.line({chart.left(), top}, {chart.right(), top}, "grid");
    draw_comparison_row(chart, comparison, row, top + height / 2);
  }
  return chart.finish();
}

std::string curve_chart(const CurveChart& curves) {
  std::vector<std::vector<Point>> drawn;
  std::vector<double> xs, ys;
  for (const CurveLine& line : curves.lines) {
    drawn.push_back(drawn_points(line, curves.logarithmic));
    for (const Point& point : drawn.back()) {
      xs.push_back(point.x);
      ys.push_back(point.y);
    }
  }
  ChartFrame frame{
      .title = curves.title,
      .description = concat(curves.title, ": ", curves.y_label, " over ", curves.x_label, "."),
      .x_label = curves.x_label,
      .y_label = curves.y_label,
      .height = 300,
      .left = 56};
  for (size_t i = 0; i < curves.lines.size(); ++i) {
    const bool joined = curves.lines[i].joined;
    frame.legend.push_back({joined ? Mark::kLine : mark_of(i),
                            joined ? "line " + hue_of(i) : mark_style(i), curves.lines[i].name});
  }
  Chart chart(frame, range_of(xs), range_of(ys));
  const Chart::Labels labels = curves.logarithmic ? Chart::Labels(power_label) : Chart::Labels();
  chart.y_axis(5, labels);
  chart.x_axis(5, labels);
  for (size_t i = 0; i < drawn.size(); ++i) {
    draw_curve_line(chart, curves.lines[i], drawn[i], i, curves.logarithmic);
  }
  return chart.finish();
}

}  // namespace fcp
