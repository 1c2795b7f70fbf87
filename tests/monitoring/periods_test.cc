#include "fcp/monitoring/periods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

namespace fcp {
namespace {

using ::testing::ElementsAre;
using Times = std::vector<std::string>;

TEST(Periods, AreCutFromDates) {
  const Times times = {"2026-01-31 23:00", "2026-02-01 00:00"};
  EXPECT_THAT(calendar_periods(times, "year"), ElementsAre("2026", "2026"));
  EXPECT_THAT(calendar_periods(times, "month"), ElementsAre("2026-01", "2026-02"));
  EXPECT_THAT(calendar_periods(times, "hour"), ElementsAre("2026-01-31 23", "2026-02-01 00"));
  EXPECT_THROW(calendar_periods(times, "week"), OptionError);
  EXPECT_THROW(calendar_periods({"2026-01-31"}, "hour"), Error);
  EXPECT_THROW(calendar_periods({"7"}, "day"), Error);
}

TEST(Periods, AreCounted) {
  EXPECT_EQ(counted_period(0, 10, {}), "rows 0–9");
  EXPECT_EQ(counted_period(19, 10, {}), "rows 10–19");
  EXPECT_EQ(counted_period(3, 2, {"1", "2", "3", "4"}), "3");
}

}  // namespace
}  // namespace fcp
