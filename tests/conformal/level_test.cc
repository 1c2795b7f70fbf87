#include "fcp/level.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

namespace fcp {
namespace {

TEST(Level, ReadsTheDecimalAsTyped) {
  const Level tenth = Level::fraction(1, 10);
  for (const char* text : {"0.1", ".1", "+.1", "00.100", "1e-1", "1E-1", "10e-2", "100.0e-03",
                           "0.0001e3", "0.01e+1"}) {
    EXPECT_EQ(Level::parse(text), tenth) << text;
    EXPECT_EQ(Level::parse(text).text(), text);
    EXPECT_EQ(Level::parse(text).value(), 0.1) << text;
  }
  EXPECT_EQ(Level::parse("0.123456789012345678"),
            Level::fraction(123456789012345678, 1000000000000000000));
  EXPECT_FALSE(Level::parse("0.123456789012345678") == Level::parse("0.123456789012345679"));
  EXPECT_EQ(Level::fraction(2, 6), Level::fraction(1, 3));
  EXPECT_EQ(Level::fraction(1, 3).text(), "1/3");
}

TEST(Level, RefusesEverythingElseInOneLine) {
  for (const char* text : {"",
                           ".",
                           "0",
                           "0.0",
                           "1",
                           "1.0",
                           "1.5",
                           "10",
                           "1e0",
                           "0.1e1",
                           "-0.1",
                           "10%",
                           "0,1",
                           "0.1 ",
                           " 0.1",
                           "0.1.2",
                           "e-1",
                           "1e",
                           "1e+-1",
                           "1e-",
                           "1e-1x",
                           "nan",
                           "inf",
                           "1/10",
                           "0x1",
                           "1e99999999999",
                           "1e-39",
                           "1e-400",
                           "0.1234567890123456789"}) {
    try {
      Level::parse(text);
      ADD_FAILURE() << text << " was accepted";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(std::string("\"") + text + "\""));
      EXPECT_THAT(error.what(), testing::HasSubstr("; expected "));
      EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("\n")));
    }
  }
  EXPECT_THROW(Level::fraction(0, 5), Error);
  EXPECT_THROW(Level::fraction(5, 5), Error);
  EXPECT_THROW(Level::fraction(1, 0), Error);
}

TEST(Level, OfADoubleHasFifteenDigits) {
  EXPECT_EQ(Level(0.1), Level::fraction(1, 10));
  EXPECT_EQ(Level(1e-3), Level::fraction(1, 1000));
  EXPECT_EQ(Level(0.05).text(), "0.05");
  EXPECT_EQ(Level(1 - 0.9), Level::fraction(1, 10));
  EXPECT_EQ(Level(1 - 0.99), Level::fraction(1, 100));
  EXPECT_EQ(Level(0.1 + 0.2), Level::fraction(3, 10));
  EXPECT_EQ(Level(0.123456789012345), Level::parse("0.123456789012345"));
  EXPECT_EQ(Level(1e-20), Level::parse("1e-20"));
  EXPECT_EQ(Level(1.0 / 3).text(), "0.333333333333333");
  for (const double bad : {0.0, 1.0, -0.1, 2.0, std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(Level{bad}, Error) << bad;
  }
}

TEST(Level, IsDividedExactly) {
  EXPECT_EQ(Level(0.1).divided_by(2), Level(0.05));
  EXPECT_EQ(Level(0.1).divided_by(3), Level::fraction(1, 30));
  EXPECT_EQ(Level(0.1).divided_by(2).text(), "0.1/2");
  EXPECT_THROW(Level(0.1).divided_by(0), Error);
  EXPECT_THROW(Level::parse("1e-38").divided_by(1000), Error);
}

TEST(Level, FloorDoesNotOverflow) {
  const uint64_t most = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(Level::parse("0.5").floor_times(most), most / 2);
  EXPECT_EQ(Level::parse("0.999999999999999999").floor_times(1000000000000000000u),
            999999999999999999u);
  EXPECT_EQ(Level::parse("0.000000000000000001").floor_times(1000000000000000000u), 1u);
  EXPECT_EQ(Level::parse("0.000000000000000001").floor_times(999999999999999999u), 0u);
  EXPECT_EQ(Level::parse("1e-38").floor_times(most), 0u);
  EXPECT_EQ(Level::fraction(most - 1, most).floor_times(most), most - 1);
}

}  // namespace
}  // namespace fcp
