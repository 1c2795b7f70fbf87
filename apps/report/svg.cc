#include "apps/report/svg.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <utility>

#include "fcp/base/error.h"

#include "apps/report/format.h"

namespace fcp {
namespace {

constexpr double kLineHeight = 17;
constexpr double kCharacterWidth = 6.4;  // of the 12 px font, on average
constexpr double kLargest = 1e300;       // of a range: room around it must not overflow
constexpr double kSmallest = 1e-300;
constexpr double kTailShare = 0.01;
constexpr double kTailFactor = 3;  // how much wider the range must be with its tails to lose them

std::string coordinate(double value) {
  assert(std::isfinite(value));
  char text[400];
  const auto end = std::to_chars(text, text + sizeof(text), value, std::chars_format::fixed, 2);
  return std::string(text, end.ptr);
}

std::vector<double> finite_sorted(std::span<const double> values) {
  std::vector<double> kept;
  for (double value : values) {
    if (std::isfinite(value)) kept.push_back(std::clamp(value, -kLargest, kLargest));
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

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

// The halves keep a range of the widest doubles from overflowing.
double position(double value, AxisRange from, double low, double high) {
  const double inside = std::clamp(value, from.low, from.high);
  return low + (high - low) * ((inside / 2 - from.low / 2) / (from.high / 2 - from.low / 2));
}

double legend_width(const LegendEntry& entry) {
  const double mark = entry.mark == Mark::kNone ? 0 : 21;
  return mark + kCharacterWidth * static_cast<double>(display_width(entry.text)) + 16;
}

}  // namespace

AxisRange range_of(std::span<const double> values, double padding) {
  const std::vector<double> sorted = finite_sorted(values);
  if (sorted.empty()) return {0, 1};
  return padded({sorted.front(), sorted.back()}, padding);
}

AxisRange robust_range(std::span<const double> values, double padding) {
  const std::vector<double> sorted = finite_sorted(values);
  if (sorted.empty()) return {0, 1};
  const auto tail = static_cast<size_t>(kTailShare * static_cast<double>(sorted.size()));
  const AxisRange whole{sorted.front(), sorted.back()};
  const AxisRange core{sorted[tail], sorted[sorted.size() - 1 - tail]};
  const double core_width = core.high / 2 - core.low / 2;
  const bool heavy = core_width > 0 && whole.high / 2 - whole.low / 2 > kTailFactor * core_width;
  return padded(heavy ? core : whole, padding);
}

std::vector<double> round_ticks(AxisRange range, int about) {
  const double rough = (range.high / 2 - range.low / 2) / about * 2;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= rough) step = factor * power;
  }
  // A rounding error must not lose the tick at an end of the range.
  const double first = std::ceil(range.low / step - 1e-9);
  const auto count = static_cast<int>(
      std::clamp(std::floor(range.high / step + 1e-9) - first + 1, 0.0, 2.0 * about + 2));
  std::vector<double> ticks;
  for (int i = 0; i < count; ++i) ticks.push_back((first + i) * step + 0.0);
  return ticks;
}

std::vector<std::string> tick_labels(std::span<const double> ticks) {
  const double step = ticks.size() > 1 ? ticks[1] - ticks[0] : 1;
  double largest = 0;
  for (double tick : ticks) largest = std::max(largest, std::abs(tick));
  const bool scientific = largest >= 1e9 || step < 1e-4;
  const int decimals = std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-9)));
  std::vector<std::string> labels;
  for (double tick : ticks) {
    if (scientific || ticks.size() < 2) {
      labels.push_back(format_number(tick, 3));
      continue;
    }
    char text[400];
    const auto end = std::to_chars(text, text + sizeof(text), std::abs(tick),
                                   std::chars_format::fixed, decimals);
    labels.push_back((tick < 0 ? "−" : "") + group_digits(std::string(text, end.ptr)));
  }
  return labels;
}

Chart::Chart(ChartFrame frame, AxisRange x, AxisRange y) : frame_(std::move(frame)), x_(x), y_(y) {
  make_room();
  draw_legend();
  bottom_ = frame_.height - (frame_.x_label.empty() ? 24 : 40);
  if (!frame_.y_label.empty()) {
    top_ += frame_.legend.empty() ? 13 : 20;
    text({0, top_}, "start", "label", frame_.y_label);
  }
  top_ += 10;
  if (!frame_.x_label.empty()) {
    text({(left() + right()) / 2, frame_.height - 6}, "middle", "label", frame_.x_label);
  }
}

// Labels of ticks must not leave the frame: the widest beside the vertical axis, and half of one
// below the right end.
void Chart::make_room() {
  constexpr int kAbout = 5;
  const auto width = [](const std::string& text) {
    return kCharacterWidth * static_cast<double>(display_width(text));
  };
  for (const std::string& label : tick_labels(round_ticks(y_, kAbout))) {
    frame_.left = std::max(frame_.left, width(label) + 14);
  }
  for (const std::string& label : tick_labels(round_ticks(x_, kAbout))) {
    frame_.right = std::max(frame_.right, width(label) / 2 + 2);
  }
}

std::string Chart::plot_attributes() const {
  if (frame_.id.empty()) return "";
  std::string numbers;
  for (const double value : {left(), right(), top(), bottom(), x_.low, x_.high, y_.low, y_.high}) {
    char text[32];
    const auto end = std::to_chars(text, text + sizeof(text), value);
    numbers += concat(numbers.empty() ? "" : " ", std::string_view(text, end.ptr));
  }
  return concat(" id=\"", frame_.id, "\" data-plot=\"", numbers, "\"");
}

void Chart::begin_group(std::string_view style) { body_ += concat("<g class=\"", style, "\">\n"); }
void Chart::end_group() { body_ += "</g>\n"; }

double Chart::x(double value) const { return position(value, x_, left(), right()); }
double Chart::y(double value) const { return position(value, y_, bottom(), top()); }

void Chart::draw_legend() {
  double at = 0;
  for (const LegendEntry& entry : frame_.legend) {
    if (at > 0 && at + legend_width(entry) - 16 > frame_.width) at = 0;
    if (at == 0) top_ += kLineHeight;
    const double middle = top_ - 5;
    const double words = entry.mark == Mark::kNone ? at : at + 21;
    if (entry.mark == Mark::kLine) line({at, middle}, {at + 16, middle}, entry.style);
    if (entry.mark == Mark::kBand) rectangle({at, middle - 5}, 16, 10, entry.style);
    if (entry.mark > Mark::kBand) mark(entry.mark, {at + 8, middle}, 4, entry.style);
    const std::string style =
        entry.text_style.empty() ? "legend" : concat("legend ", entry.text_style);
    text({words, top_ - 1}, "start", style, entry.text);
    at += legend_width(entry);
  }
}

void Chart::x_axis(int about, const Labels& label) {
  const std::vector<double> ticks = round_ticks(x_, about);
  const std::vector<std::string> plain = tick_labels(ticks);
  line({left(), bottom()}, {right(), bottom()}, "axis");
  for (size_t i = 0; i < ticks.size(); ++i) {
    const double at = x(ticks[i]);
    line({at, bottom()}, {at, bottom() + 4}, "axis");
    text({at, bottom() + 17}, "middle", "tick", label ? label(ticks[i], plain[i]) : plain[i]);
  }
}

void Chart::y_axis(int about, const Labels& label) {
  const std::vector<double> ticks = round_ticks(y_, about);
  const std::vector<std::string> plain = tick_labels(ticks);
  for (size_t i = 0; i < ticks.size(); ++i) {
    const double at = y(ticks[i]);
    line({left(), at}, {right(), at}, "grid");
    text({left() - 6, at + 4}, "end", "tick", label ? label(ticks[i], plain[i]) : plain[i]);
  }
}

void Chart::close(std::string_view element, std::string_view tip) {
  body_ += tip.empty() ? std::string("/>\n")
                       : concat("><title>", escape_text(tip), "</title></", element, ">\n");
}

void Chart::line(Point from, Point to, std::string_view style, std::string_view tip) {
  body_ +=
      concat("<line class=\"", style, "\" x1=\"", coordinate(from.x), "\" y1=\"",
             coordinate(from.y), "\" x2=\"", coordinate(to.x), "\" y2=\"", coordinate(to.y), "\"");
  close("line", tip);
}

void Chart::rectangle(Point corner, double width, double height, std::string_view style,
                      std::string_view tip) {
  body_ += concat("<rect class=\"", style, "\" x=\"", coordinate(corner.x), "\" y=\"",
                  coordinate(corner.y), "\" width=\"", coordinate(width), "\" height=\"",
                  coordinate(height), "\"");
  close("rect", tip);
}

void Chart::add_points(std::string_view element, std::span<const Point> points,
                       std::string_view style) {
  if (points.empty()) return;
  body_ += concat("<", element, " class=\"", style, "\" points=\"");
  for (const Point& point : points) {
    body_ += concat(coordinate(point.x), ",", coordinate(point.y), " ");
  }
  body_.back() = '"';
  body_ += "/>\n";
}

void Chart::polyline(std::span<const Point> points, std::string_view style) {
  add_points("polyline", points, style);
}

void Chart::polygon(std::span<const Point> points, std::string_view style) {
  add_points("polygon", points, style);
}

void Chart::mark(Mark mark, Point at, double radius, std::string_view style, std::string_view tip) {
  const auto corner = [&](double dx, double dy) {
    return concat(coordinate(at.x + radius * dx), " ", coordinate(at.y + radius * dy));
  };
  if (mark == Mark::kDot) {
    body_ += concat("<circle class=\"", style, "\" cx=\"", coordinate(at.x), "\" cy=\"",
                    coordinate(at.y), "\" r=\"", coordinate(radius), "\"");
    close("circle", tip);
    return;
  }
  const std::string path = mark == Mark::kCross ? concat("M", corner(-1, -1), "L", corner(1, 1),
                                                         "M", corner(-1, 1), "L", corner(1, -1))
                                                : concat("M", corner(0, -1), "L", corner(1, 0), "L",
                                                         corner(0, 1), "L", corner(-1, 0), "Z");
  body_ += concat("<path class=\"", style, "\" d=\"", path, "\"");
  close("path", tip);
}

void Chart::text(Point at, std::string_view anchor, std::string_view style, std::string_view text,
                 std::string_view tip) {
  body_ += concat("<text class=\"", style, "\" x=\"", coordinate(at.x), "\" y=\"", coordinate(at.y),
                  "\" text-anchor=\"", anchor, "\">");
  if (!tip.empty()) body_ += concat("<title>", escape_text(tip), "</title>");
  body_ += escape_text(text) + "</text>\n";
}

std::string Chart::finish() const {
  return concat(
      "<svg class=\"chart\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 ",
      coordinate(frame_.width), " ", coordinate(frame_.height), "\"", plot_attributes(),
      ">\n<title>", escape_text(frame_.title), "</title>\n<desc>", escape_text(frame_.description),
      "</desc>\n", body_, "</svg>\n");
}

}  // namespace fcp
