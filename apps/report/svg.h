// The drawing board of the charts: scales, ticks, axes, marks, legend.
//
// A chart is one <svg> element of a fixed viewBox that takes the width it is given. Colours are CSS
// custom properties (chart_style below), so that it reads in light and dark; every mark may carry a
// tooltip, and the whole a title and a description for those who do not see it.
//
// Values may be infinite: a scale maps what lies outside its range to the edge, and no coordinate
// is ever written that is not a finite number.
// Tested by tests/report/svg_test.cc.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fcp {

// The CSS of all charts: the colours for light and dark, and the classes of the marks.
std::string_view chart_style();

// A chart with its style inside, to be written to a file of its own.
std::string standalone_svg(const std::string& chart);

struct AxisRange {
  double low = 0;
  double high = 1;
};

// From the least to the greatest finite value, widened by this share on both sides. A single value
// gets room around it; no finite value at all gives [0, 1].
AxisRange range_of(std::span<const double> values, double padding = 0.05);

// The same without the outermost values (below 1 %, above 99 %) where those would take up most of
// the range, as they do with heavy tails.
AxisRange robust_range(std::span<const double> values, double padding = 0.05);

// About so many round numbers inside the range: multiples of 1, 2 or 5 times a power of ten.
std::vector<double> round_ticks(AxisRange range, int about);

// Ticks as text, with as many decimals as tell them apart.
std::vector<std::string> tick_labels(std::span<const double> ticks);

struct Point {
  double x = 0;
  double y = 0;
};

enum class Mark { kNone, kLine, kBand, kDot, kCross, kDiamond };

struct LegendEntry {
  Mark mark = Mark::kNone;
  std::string style;  // CSS classes of the mark
  std::string text;
  std::string text_style = {};  // further CSS classes of the text
};

struct ChartFrame {
  std::string title;
  std::string description;
  std::string id = {};  // of the element, for a script that redraws it: it then knows the scales
  std::string x_label = {};
  std::string y_label = {};
  double width = 420;
  double height = 270;
  double left = 46;  // room for the labels of the vertical axis, at least
  double right = 12;
  std::vector<LegendEntry> legend = {};
};

class Chart {
 public:
  // From a tick and its plain text.
  using Labels = std::function<std::string(double, const std::string&)>;

  Chart(ChartFrame frame, AxisRange x, AxisRange y);

  // Where a value lies, in the units of the viewBox; outside the range: at the edge.
  double x(double value) const;
  double y(double value) const;
  double left() const { return frame_.left; }
  double right() const { return frame_.width - frame_.right; }
  double top() const { return top_; }
  double bottom() const { return bottom_; }

  // Grid lines and labels at round numbers; `label` replaces the plain text.
  void x_axis(int about, const Labels& label = {});
  void y_axis(int about, const Labels& label = {});

  // What is drawn between the two is one group of this class.
  void begin_group(std::string_view style);
  void end_group();

  void line(Point from, Point to, std::string_view style, std::string_view tip = {});
  void rectangle(Point corner, double width, double height, std::string_view style,
                 std::string_view tip = {});
  void polyline(std::span<const Point> points, std::string_view style);
  void polygon(std::span<const Point> points, std::string_view style);
  void mark(Mark mark, Point at, double radius, std::string_view style, std::string_view tip = {});
  void text(Point at, std::string_view anchor, std::string_view style, std::string_view text,
            std::string_view tip = {});

  std::string finish() const;

 private:
  void draw_legend();
  void make_room();
  std::string plot_attributes() const;
  void close(std::string_view element, std::string_view tip);
  void add_points(std::string_view element, std::span<const Point> points, std::string_view style);

  ChartFrame frame_;
  AxisRange x_;
  AxisRange y_;
  double top_ = 0;
  double bottom_ = 0;
  std::string body_;
};

}  // namespace fcp
