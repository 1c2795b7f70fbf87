#include "fcp/base/text_table.h"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

namespace fcp {
namespace {

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

TEST(Times, TakesDatesAndNumbersInOrder) {
  EXPECT_EQ(complaint({"2026-01-31 23:00", "2026-02-01 00:00", "2026-02-01 00:00"}), "");
  EXPECT_EQ(complaint({"9", "10", "10.5"}), "");
  EXPECT_EQ(complaint({}), "");
}

TEST(Times, NamesTheRowThatIsOutOfOrder) {
  EXPECT_THAT(complaint({"2026-01-02", "2026-01-01"}), HasSubstr("row 1 (from 0) is '2026-01-01'"));
  EXPECT_THAT(complaint({"9", "10", "8"}), HasSubstr("row 2 (from 0) is '8'"));
  EXPECT_THAT(complaint({"9", "soon"}), HasSubstr("expected a number"));
  EXPECT_THAT(complaint({"yesterday"}), HasSubstr("expected a number or a date"));
}

TEST(Times, ComparesNumbersByValueAndDatesByText) {
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

}  // namespace
}  // namespace fcp
