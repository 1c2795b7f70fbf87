#include <algorithm>
#include <cmath>

#include "fcp/base/error.h"

#include "apps/report/format.h"
#include "apps/report/monitor_report.h"
#include "apps/report/svg.h"

namespace fcp {
namespace {

constexpr double kTimelineWidth = 860;

struct TimeSeries {
  std::string name;
  std::string style;  // series0 … series3
  std::vector<double> values;
};

ChartFrame timeline_frame(const std::string& title, const std::string& description,
                          const std::string& y_label, std::span<const TimeSeries> series) {
  ChartFrame frame{.title = title, .description = description, .y_label = y_label};
  frame.width = kTimelineWidth;
  for (const TimeSeries& one : series) {
    frame.legend.push_back({Mark::kLine, "line " + one.style, one.name});
  }
  return frame;
}

// The period's name below every so many points, so that names do not meet.
void label_periods(Chart& chart, const std::vector<TimelinePoint>& points) {
  const size_t stride = points.size() / 10 + 1;
  chart.x_axis(static_cast<int>(points.size() / stride) + 1,
               [&](double tick, const std::string&) -> std::string {
                 const auto at = static_cast<long>(std::lround(tick));
                 const bool there = std::abs(tick - static_cast<double>(at)) < 1e-6 && at >= 0 &&
                                    at < static_cast<long>(points.size());
                 return there ? points[static_cast<size_t>(at)].label.substr(0, 16) : "";
               });
}

void draw_series(Chart& chart, const TimeSeries& series, const std::vector<TimelinePoint>& points) {
  std::vector<Point> line;
  for (size_t i = 0; i < series.values.size(); ++i) {
    line.push_back({chart.x(static_cast<double>(i)), chart.y(series.values[i])});
  }
  chart.polyline(line, "line " + series.style);
  for (size_t i = 0; i < line.size(); ++i) {
    chart.mark(Mark::kDot, line[i], 2.6, "dot " + series.style,
               concat(points[i].label, ", ", series.name, ": ", format_number(series.values[i])));
  }
}

AxisRange period_range(const MonitorReport& report) {
  return {-0.5, std::max(0.5, static_cast<double>(report.timeline.size()) - 0.5)};
}

std::string timeline_chart(const MonitorReport& report, ChartFrame frame, AxisRange range,
                           std::span<const TimeSeries> series, double line_at) {
  Chart chart(std::move(frame), period_range(report), range);
  label_periods(chart, report.timeline);
  chart.y_axis(5);
  if (std::isfinite(line_at)) {
    chart.line({chart.left(), chart.y(line_at)}, {chart.right(), chart.y(line_at)}, "target");
  }
  for (const TimeSeries& one : series) draw_series(chart, one, report.timeline);
  return chart.finish();
}

template <typename Value>
std::vector<double> values_of(const MonitorReport& report, const Value& value) {
  std::vector<double> values;
  for (const TimelinePoint& point : report.timeline) values.push_back(value(point));
  return values;
}

}  // namespace

std::string coverage_timeline_chart(const MonitorReport& report) {
  std::vector<TimeSeries> series = {
      {"coverage of the period", "series0",
       values_of(report, [](const TimelinePoint& p) { return p.covered.rate(); })}};
  if (report.adapted_covered.rows > 0) {
    series.push_back({"adapted", "series1", values_of(report, [](const TimelinePoint& p) {
                        return p.adapted_covered.rate();
                      })});
  }
  const double target = 1 - report.options.level.value();
  double low = target;
  for (const TimeSeries& one : series) {
    for (const double value : one.values) low = std::min(low, value);
  }
  return timeline_chart(report,
                        timeline_frame("Coverage over time",
                                       "The share of covered rows in each period; the line is what "
                                       "was promised.",
                                       "coverage", series),
                        {std::max(0.0, low - 0.05), 1}, series, target);
}

std::string capital_timeline_chart(const MonitorReport& report) {
  std::vector<TimeSeries> series;
  const auto add = [&](bool watched, const char* name, const char* style,
                       double TimelinePoint::*capital) {
    if (!watched) return;
    series.push_back({name, style, values_of(report, [&](const TimelinePoint& p) {
                        return p.*capital / std::log(10);
                      })});
  };
  add(report.watches_exchangeability, "exchangeability", "series0",
      &TimelinePoint::log_exchangeability);
  add(report.watches_coverage, "coverage", "series1", &TimelinePoint::log_coverage);
  add(report.watches_drift, "drift of inputs", "series2", &TimelinePoint::log_drift);
  const double threshold = -std::log10(report.options.false_alarms / 3);
  std::vector<double> all = {threshold, 0};
  for (const TimeSeries& one : series) all.insert(all.end(), one.values.begin(), one.values.end());
  AxisRange range = range_of(all);
  range.high = std::min(range.high, 6 * threshold);  // what is above stands at the edge
  return timeline_chart(
      report,
      timeline_frame("Evidence of change over time",
                     "The decimal logarithm of the capital of each test at the end of each period; "
                     "the line is where exchangeability and drift raise their alarms.",
                     "log10 of the capital", series),
      range, series, threshold);
}

std::string size_timeline_chart(const MonitorReport& report) {
  std::vector<TimeSeries> series = {
      {"mean size, infinite ones left out", "series0",
       values_of(report, [](const TimelinePoint& p) { return p.size.mean(); })}};
  if (report.adapted_covered.rows > 0) {
    series.push_back({"adapted", "series1", values_of(report, [](const TimelinePoint& p) {
                        return p.adapted_size.mean();
                      })});
  }
  std::vector<double> all = {0};
  for (const TimeSeries& one : series) all.insert(all.end(), one.values.begin(), one.values.end());
  return timeline_chart(report,
                        timeline_frame("Size over time",
                                       "Mean length of the intervals, or labels in the sets, of "
                                       "each period.",
                                       "mean size", series),
                        range_of(all), series, std::nan(""));
}

}  // namespace fcp
