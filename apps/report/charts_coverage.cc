#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "fcp/base/error.h"

#include "apps/report/charts.h"
#include "apps/report/format.h"
#include "apps/report/promise.h"
#include "apps/report/svg.h"

namespace fcp {
namespace {

constexpr size_t kMostDots = 25;
constexpr size_t kLongestName = 20;

// One point of a curve, everything as a difference from 1 − α in percentage points.
struct Deviation {
  double alpha = 0;
  double rate = 0;
  double low = 0;
  double high = 0;
  double beta_low = 0;
  double beta_high = 0;
};

std::vector<Deviation> deviations(std::span<const CurvePoint> points, size_t n) {
  std::vector<Deviation> result;
  for (const CurvePoint& point : points) {
    const double alpha = point.level.value();
    const auto points_above = [&](double coverage) { return 100 * (coverage - (1 - alpha)); };
    Deviation d{alpha, points_above(point.coverage.rate), points_above(point.coverage.lower),
                points_above(point.coverage.upper)};
    if (n > 0) {
      // Where n is too small for the level, the radius is infinite and covers all.
      const ExpectedCoverage all{1, 1};
      const ExpectedCoverage expected = expected_coverage(point.level, n).value_or(all);
      d.beta_low = points_above(expected.low);
      d.beta_high = points_above(expected.high);
    }
    result.push_back(d);
  }
  std::sort(result.begin(), result.end(),
            [](const Deviation& a, const Deviation& b) { return a.alpha < b.alpha; });
  return result;
}

// A band around a curve; around a single point, a bar.
void draw_band(Chart& chart, std::span<const Deviation> points, double Deviation::*low,
               double Deviation::*high, std::string_view style) {
  if (points.size() == 1) {
    const Deviation& only = points.front();
    const double top = chart.y(only.*high);
    chart.rectangle({chart.x(only.alpha) - 4, top}, 8, chart.y(only.*low) - top, style);
    return;
  }
  std::vector<Point> outline;
  for (const Deviation& d : points) outline.push_back({chart.x(d.alpha), chart.y(d.*high)});
  for (size_t i = points.size(); i-- > 0;) {
    outline.push_back({chart.x(points[i].alpha), chart.y(points[i].*low)});
  }
  chart.polygon(outline, style);
}

void draw_curve(Chart& chart, std::span<const Deviation> points, const std::string& style,
                const std::string& name) {
  std::vector<Point> line;
  for (const Deviation& d : points) line.push_back({chart.x(d.alpha), chart.y(d.rate)});
  chart.polyline(line, "line " + style);
  if (points.size() > kMostDots) return;
  for (const Deviation& d : points) {
    chart.mark(Mark::kDot, {chart.x(d.alpha), chart.y(d.rate)}, 2.6, "dot " + style,
               concat(name, ", α = ", format_number(d.alpha, 3), ": coverage ",
                      format_percent(1 - d.alpha + d.rate / 100), ", target ",
                      format_percent(1 - d.alpha)));
  }
}

std::string series_style(size_t i) { return concat("series", std::min<size_t>(i, 3)); }

ChartFrame curve_frame(std::span<const CurveSeries> series, size_t n) {
  ChartFrame frame{.title = "Coverage minus target over alpha",
                   .description =
                       "Empirical coverage minus 1 − α for several levels α; zero is the "
                       "target.",
                   .x_label = "α",
                   .y_label = "coverage − (1 − α), percentage points"};
  for (size_t i = 0; i < series.size(); ++i) {
    frame.legend.push_back({Mark::kLine, "line " + series_style(i), series[i].name});
  }
  if (!series.empty()) frame.legend.push_back({Mark::kBand, "confidence", "its confidence band"});
  if (n > 0) {
    frame.legend.push_back(
        {Mark::kBand, "expected", concat("expected, n = ", format_count(n), " (5–95 %)")});
  }
  return frame;
}

std::string with_sign(double tick, const std::string& plain) {
  return concat(tick > 0 ? "+" : "", plain);
}

AxisRange parts_range(std::span<const GroupCoverage> parts, double target) {
  double low = target;
  for (const GroupCoverage& part : parts) low = std::min(low, part.coverage.lower);
  return {std::max(0.0, low - 0.05 * (1 - low)), 1};
}

std::string shortened(const std::string& name) {
  if (display_width(name) <= kLongestName) return name;
  std::string text;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(name[i]) & 0xC0) != 0x80;
    if (begins && display_width(text) + 1 >= kLongestName) break;
    text += name[i];
  }
  return text + "…";
}

void draw_part(Chart& chart, const GroupCoverage& part, double y, double target) {
  const Coverage& coverage = part.coverage;
  const bool below = coverage.upper < target;
  const std::string style = below ? "miss" : "series0";
  const std::string tip =
      concat(part.name, ": ", format_count(coverage.covered), " of ", format_count(coverage.rows),
             " rows covered, ", format_percent(coverage.rate), " (",
             format_percent_range(coverage.lower, coverage.upper), ")");
  chart.text({chart.left() - 10, y + 4}, "end", "name", shortened(part.name), part.name);
  chart.line({chart.x(coverage.lower), y}, {chart.x(coverage.upper), y}, "whisker " + style, tip);
  chart.mark(below ? Mark::kDiamond : Mark::kDot, {chart.x(coverage.rate), y}, below ? 5.5 : 4.5,
             "dot " + style, tip);
  chart.text({chart.right() + 10, y + 4}, "start", "value", format_percent(coverage.rate));
}

}  // namespace

std::string coverage_curve_chart(std::span<const CurveSeries> series, size_t calibration_rows,
                                 std::optional<double> cursor) {
  std::vector<std::vector<Deviation>> curves;
  std::vector<double> values = {0};
  double last_alpha = 0;
  for (const CurveSeries& one : series) {
    curves.push_back(deviations(one.points, calibration_rows));
    const bool main = curves.size() == 1;
    for (const Deviation& d : curves.back()) {
      values.push_back(d.rate);
      if (main) values.insert(values.end(), {d.low, d.high, d.beta_low, d.beta_high});
      last_alpha = std::max(last_alpha, d.alpha);
    }
  }
  if (values.size() == 1) values = {-5, 5};
  ChartFrame frame = curve_frame(series, calibration_rows);
  if (cursor) frame.id = "curve";
  Chart chart(std::move(frame), {0, last_alpha > 0 ? last_alpha * 1.03 : 1}, range_of(values));
  if (!curves.empty() && calibration_rows > 0) {
    draw_band(chart, curves[0], &Deviation::beta_low, &Deviation::beta_high, "expected");
  }
  chart.y_axis(5, with_sign);
  chart.x_axis(6);
  if (!curves.empty()) {
    draw_band(chart, curves[0], &Deviation::low, &Deviation::high, "confidence");
  }
  chart.line({chart.left(), chart.y(0)}, {chart.right(), chart.y(0)}, "target");
  if (cursor) {
    chart.line({chart.x(*cursor), chart.top()}, {chart.x(*cursor), chart.bottom()}, "cursor");
  }
  for (size_t i = curves.size(); i-- > 0;) {
    draw_curve(chart, curves[i], series_style(i), series[i].name);
  }
  return chart.finish();
}

std::string coverage_parts_chart(const CoverageParts& parts_chart) {
  std::vector<GroupCoverage> parts = parts_chart.parts;
  const double target = 1 - parts_chart.level.value();
  ChartFrame frame{.title = parts_chart.title,
                   .description = "Coverage of each part of the rows with its confidence interval.",
                   .left = 138,
                   .right = 62};
  frame.legend = {{Mark::kLine, "target", "target " + format_target(parts_chart.level)}};
  const auto is_below = [&](const GroupCoverage& part) { return part.coverage.upper < target; };
  if (std::any_of(parts.begin(), parts.end(), is_below)) {
    frame.legend.push_back({Mark::kDiamond, "dot miss", "wholly below the target"});
  }
  if (parts.size() > parts_chart.most) {
    std::stable_sort(parts.begin(), parts.end(),
                     [](const GroupCoverage& a, const GroupCoverage& b) {
                       return a.coverage.rate < b.coverage.rate;
                     });
    frame.legend.push_back(
        {Mark::kNone, "", concat("the worst ", parts_chart.most, " of ", parts.size())});
    parts.resize(parts_chart.most);
  }
  constexpr double kRowHeight = 24;
  const double rows = static_cast<double>(std::max<size_t>(1, parts.size()));
  frame.height = 27 + 17.0 * (1 + (frame.legend.size() > 2)) + 24 + kRowHeight * rows;

  Chart chart(frame, parts_range(parts, target), {0, 1});
  chart.x_axis(4, [](double tick, const std::string&) { return format_percent(tick, 0); });
  chart.line({chart.x(target), chart.top()}, {chart.x(target), chart.bottom()}, "target");
  double y = chart.top() + kRowHeight / 2;
  for (const GroupCoverage& part : parts) {
    draw_part(chart, part, y, target);
    y += kRowHeight;
  }
  return chart.finish();
}

}  // namespace fcp
