#include "fcp/data/date.h"

#include <gtest/gtest.h>

namespace fcp {
namespace {

double days(std::string_view text, DateOrder order = DateOrder::kMonthFirst) {
  double value = -1e9;
  return parse_date(text, order, value) ? value : -1e9;
}

TEST(Date, ReadsTheUsualWays) {
  for (const char* text :
       {"2000-03-01", "2000/3/1", "1.3.2000", "01.03.00", "3/1/2000", "3/1/00", "1 Mar 2000",
        "1-Mar-2000", "March 1, 2000", "Mar 1 2000", " 2000-3-1 "}) {
    EXPECT_EQ(days(text), 60) << text;  // 31 days of January and 29 of February
  }
  EXPECT_EQ(days("1/3/2000", DateOrder::kDayFirst), 60);
  EXPECT_EQ(days("1999-12-31"), -1);
  EXPECT_EQ(days("31/12/99", DateOrder::kDayFirst), -1);
}

TEST(Date, ReadsTimesAsFractions) {
  EXPECT_DOUBLE_EQ(days("2000-01-01T12:00"), 0.5);
  EXPECT_DOUBLE_EQ(days("2000-01-02 06:00:00"), 1.25);
  EXPECT_DOUBLE_EQ(days("1/1/2000 6:00 PM"), 0.75);
  EXPECT_DOUBLE_EQ(days("2000-01-01T02:00:00+02:00"), 0);
  EXPECT_DOUBLE_EQ(days("2000-01-01T00:00:43.2Z"), 0.0005);
}

TEST(Date, ReadsMonthsQuartersAndTimesAlone) {
  for (const char* text : {"Mar-2000", "Mar 2000", "March 2000", "20000301"}) {
    EXPECT_EQ(days(text), 60) << text;
  }
  for (const char* text : {"2000 Q2", "2000Q2", "2000-q2", "Q2 2000", "Q2-2000"}) {
    EXPECT_EQ(days(text), 91) << text;
  }
  EXPECT_DOUBLE_EQ(days("12:00:00"), 0.5);
  EXPECT_DOUBLE_EQ(days("6:00"), 0.25);
  EXPECT_DOUBLE_EQ(days("11:38:36"), (11 * 3600 + 38 * 60 + 36) / 86400.0);
}

TEST(Date, RefusesWhatIsNone) {
  for (const char* text : {"",
                           "12",
                           "2000",
                           "2000-13-01",
                           "2000-02-30",
                           "13/13/2000",
                           "1.5",
                           "abcdef",
                           "2000-01-01x",
                           "2000-01-01 25:00",
                           "2000-01-01 12:61",
                           "1.2.3.4.5",
                           "Foo 1, 2000",
                           "2000-01-01T",
                           "192.168.1.1",
                           "2000 Q5",
                           "Q2 00",
                           "200003011",
                           "20001301",
                           "25:00:00",
                           "12:61",
                           "Mar-18"}) {
    EXPECT_EQ(days(text), -1e9) << text;
  }
}

}  // namespace
}  // namespace fcp
