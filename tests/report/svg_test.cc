#include "apps/report/svg.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/random.h"

#include "apps/report/format.h"
#include "report_samples.h"
#include "svg_numbers.h"

namespace fcp {
namespace {

using ::testing::ElementsAre;
using testing::kInfinity;
using testing::kNaN;

TEST(EscapeText, LeavesNoMarkup) {
  EXPECT_EQ(escape_text("a<b> & \"c\" 'd' ≤"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39; ≤");
  EXPECT_EQ(escape_text(std::string("a\0b\x1b\nc", 6)), "ab\nc");
}

TEST(RangeOf, IgnoresWhatIsNotFinite) {
  const std::vector<double> values = {kInfinity, 2, -kInfinity, 4, kNaN};
  const AxisRange range = range_of(values, 0);
  EXPECT_EQ(range.low, 2);
  EXPECT_EQ(range.high, 4);
}

TEST(RangeOf, IsNeverEmpty) {
  const double huge = std::numeric_limits<double>::max();
  const double tiny = std::numeric_limits<double>::denorm_min();
  const std::vector<std::vector<double>> cases = {
      {}, {kNaN}, {kInfinity}, {0}, {5, 5}, {-3}, {1, 1 + 1e-15}, {tiny}, {-huge, huge}, {huge}};
  for (const auto& values : cases) {
    for (const AxisRange& range : {range_of(values, 0), robust_range(values, 0)}) {
      EXPECT_TRUE(std::isfinite(range.low) && std::isfinite(range.high));
      EXPECT_LT(range.low, range.high);
    }
  }
}

TEST(RobustRange, CutsAHeavyTailOnly) {
  std::vector<double> values;
  for (int i = 0; i < 1000; ++i) values.push_back(i);
  EXPECT_EQ(robust_range(values, 0).high, 999);
  values.back() = 1e6;
  EXPECT_LT(robust_range(values, 0).high, 1000);
}

TEST(RoundTicks, AreRoundAndInside) {
  EXPECT_THAT(round_ticks({0, 1}, 5), ElementsAre(0, 0.2, 0.4, ::testing::DoubleEq(0.6), 0.8, 1));
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    const double low = std::pow(10, 20 * random.uniform() - 10) * (random.uniform() - 0.5);
    const double width = std::pow(10, 20 * random.uniform() - 10);
    if (width < 1e-5 * std::abs(low)) continue;  // range_of never makes such a range
    const AxisRange range{low, low + width};
    const std::vector<double> ticks = round_ticks(range, 5);
    ASSERT_GE(ticks.size(), 2u) << low << " " << width;
    ASSERT_LE(ticks.size(), 7u);
    EXPECT_GE(ticks.front(), range.low - 1e-6 * width);
    EXPECT_LE(ticks.back(), range.high + 1e-6 * width);
  }
}

TEST(TickLabels, TellTicksApart) {
  EXPECT_THAT(tick_labels(std::vector<double>{-0.2, 0, 0.2}), ElementsAre("−0.2", "0.0", "0.2"));
  EXPECT_THAT(tick_labels(std::vector<double>{0, 500, 1000}), ElementsAre("0", "500", "1,000"));
  EXPECT_THAT(tick_labels(std::vector<double>{1e6, 2e6}), ElementsAre("1,000,000", "2,000,000"));
  EXPECT_THAT(tick_labels(std::vector<double>{1e9, 2e9}), ElementsAre("1.00e9", "2.00e9"));
}

TEST(Chart, MapsTheRangeToThePlotAndTheRestToItsEdge) {
  const Chart chart({.title = "t", .description = "d"}, {10, 20}, {0, 1});
  EXPECT_DOUBLE_EQ(chart.x(10), chart.left());
  EXPECT_DOUBLE_EQ(chart.x(20), chart.right());
  EXPECT_DOUBLE_EQ(chart.x(15), (chart.left() + chart.right()) / 2);
  EXPECT_DOUBLE_EQ(chart.x(kInfinity), chart.right());
  EXPECT_DOUBLE_EQ(chart.x(-kInfinity), chart.left());
  EXPECT_DOUBLE_EQ(chart.y(0), chart.bottom());
  EXPECT_DOUBLE_EQ(chart.y(kInfinity), chart.top());
}

TEST(Chart, EscapesAllItsText) {
  Chart chart({.title = "<t>",
               .description = "<d>",
               .x_label = "<x>",
               .y_label = "<y>",
               .legend = {{Mark::kDot, "dot", "<l>"}}},
              {0, 1}, {0, 1});
  chart.text({1, 1}, "start", "name", "<n>", "<tip>");
  chart.line({0, 0}, {1, 1}, "line", "<tip>");
  const std::string svg = chart.finish();
  for (const char* raw : {"<t>", "<d>", "<x>", "<y>", "<l>", "<n>", "<tip>"}) {
    EXPECT_EQ(svg.find(raw), std::string::npos) << raw;
  }
  EXPECT_EQ(testing::count_of(svg, "&lt;tip&gt;"), 2u);
}

TEST(StandaloneSvg, CarriesItsStyle) {
  const Chart chart({.title = "t", .description = "d"}, {0, 1}, {0, 1});
  const std::string svg = standalone_svg(chart.finish());
  EXPECT_EQ(svg.rfind("<svg ", 0), 0u);
  EXPECT_NE(svg.find("<style>"), std::string::npos);
  EXPECT_NE(svg.find("prefers-color-scheme: dark"), std::string::npos);
}

}  // namespace
}  // namespace fcp
