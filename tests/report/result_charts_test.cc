#include "apps/report/result_charts.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "svg_numbers.h"

namespace fcp {
namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(ResultCharts, AComparisonDrawsWhatIsThere) {
  const std::string chart =
      comparison_chart({"Lengths",
                        "x",
                        {"bio", "bike"},
                        {{"nested", {0.9, kNan}, {0.1, 0}}, {"cqr", {1, 2}, {}}},
                        1});
  EXPECT_EQ(testing::count_of(chart, "bio, nested: 0.9000 ± 0.10"), 2u);  // mark and whisker
  EXPECT_EQ(testing::count_of(chart, "bike, nested"), 0u);
  EXPECT_EQ(testing::count_of(chart, "bike, cqr: 2.000 ± 0"), 1u);
  EXPECT_EQ(testing::count_of(chart, "class=\"target\""), 1u);
}

TEST(ResultCharts, NothingIsDrawnOfNothing) {
  const std::string chart = comparison_chart({"Lengths", "x", {}, {}, {}});
  EXPECT_THAT(chart, ::testing::StartsWith("<svg "));
  EXPECT_THAT(chart, ::testing::Not(::testing::HasSubstr("nan")));
  EXPECT_THAT(curve_chart({"Empty", "x", "y", {{"none", {}, true}}}),
              ::testing::Not(::testing::HasSubstr("nan")));
}

TEST(ResultCharts, LogarithmicAxesLeaveOutWhatIsNotPositive) {
  const std::string chart =
      curve_chart({"C", "n", "bias", {{"b", {{10, 1}, {100, 0.1}, {1000, 0}, {1000, -1}}}}, true});
  EXPECT_EQ(testing::count_of(chart, "<circle"), 2u);
  EXPECT_THAT(chart, ::testing::HasSubstr("b: 100, 0.100"));
  EXPECT_THAT(chart, ::testing::HasSubstr(">100<"));  // a tick in the unit of the data
}

TEST(ResultCharts, MarksAloneAreNotJoined) {
  const std::string joined = curve_chart({"C", "x", "y", {{"a", {{0, 1}, {1, 2}}, true}}});
  const std::string alone = curve_chart({"C", "x", "y", {{"a", {{0, 1}, {1, 2}}, false}}});
  EXPECT_EQ(testing::count_of(joined, "<polyline"), 1u);
  EXPECT_EQ(testing::count_of(alone, "<polyline"), 0u);
}

}  // namespace
}  // namespace fcp
