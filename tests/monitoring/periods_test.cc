#include "fcp/monitoring/periods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

namespace fcp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Times = std::vector<std::string>;

std::string complaint(const Times& times) {
  try {
    check_times(times);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Periods, TakesDatesAndNumbersInOrder) {
  EXPECT_EQ(complaint({"2026-01-31 23:00", "2026-02-01 00:00", "2026-02-01 00:00"}), "");
  EXPECT_EQ(complaint({"9", "10", "10.5"}), "");
  EXPECT_EQ(complaint({}), "");
}

TEST(Periods, NamesTheRowThatIsOutOfOrder) {
  EXPECT_THAT(complaint({"2026-01-02", "2026-01-01"}), HasSubstr("row 1 (from 0) is '2026-01-01'"));
  EXPECT_THAT(complaint({"9", "10", "8"}), HasSubstr("row 2 (from 0) is '8'"));
  EXPECT_THAT(complaint({"9", "soon"}), HasSubstr("expected a number"));
  EXPECT_THAT(complaint({"yesterday"}), HasSubstr("expected a number or a date"));
}

TEST(Periods, ComparesNumbersByValueAndDatesByText) {
  EXPECT_TRUE(is_earlier("9", "10"));
  EXPECT_FALSE(is_earlier("10", "9"));
  EXPECT_FALSE(is_earlier("10", "10.0"));
  EXPECT_TRUE(is_earlier("2026-01-31", "2026-01-31T01"));
  EXPECT_FALSE(is_earlier("2026-02-01", "2026-01-31T01"));
  for (const auto& [a, b] : {std::pair("2026-02-01", "7"), std::pair("7", "2026-02-01")}) {
    try {
      is_earlier(a, b);
      FAIL() << "compared a number with a date";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(),
                   "time: '7' is a number and '2026-02-01' a date; expected times of one kind");
    }
  }
}

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
