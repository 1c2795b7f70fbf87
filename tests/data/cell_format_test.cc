#include "fcp/data/cell_format.h"

#include <gtest/gtest.h>

namespace fcp {
namespace {

constexpr double kNone = -12345;

double styled(std::string_view text, NumberStyle style) {
  double value = kNone;
  return parse_styled_number(text, style, value) ? value : kNone;
}

TEST(CellFormat, ReadsNumbersAsPeopleWriteThem) {
  const auto point = [](std::string_view text) { return styled(text, NumberStyle::kPoint); };
  EXPECT_EQ(point("1,234.5"), 1234.5);
  EXPECT_EQ(point("$1,200"), 1200);
  EXPECT_EQ(point("-$1,200.50"), -1200.5);
  EXPECT_EQ(point("$-5"), -5);
  EXPECT_EQ(point("(1,200)"), -1200);
  EXPECT_EQ(point("12 %"), 12);
  EXPECT_EQ(point("€ 3.5"), 3.5);
  EXPECT_EQ(point("1 234 567"), 1234567);
  EXPECT_EQ(point("1'000"), 1000);
  EXPECT_EQ(point("7"), 7);
  EXPECT_EQ(point("1e3"), 1000);
  const auto comma = [](std::string_view text) { return styled(text, NumberStyle::kComma); };
  EXPECT_EQ(comma("1.234,5"), 1234.5);
  EXPECT_EQ(comma("3,14"), 3.14);
  EXPECT_EQ(comma("-0,5 €"), -0.5);
  EXPECT_EQ(comma("1\u00a0234,5"), 1234.5);
}

TEST(CellFormat, RefusesWhatIsNoNumber) {
  for (const char* text : {"", "$", "abc", "1,23,4", "12,34", "1,2345", "--5", "1.2.3", "5-", "(5",
                           "1 2", "31.12.2024", "12:30", "+-3"}) {
    EXPECT_EQ(styled(text, NumberStyle::kPoint), kNone) << text;
  }
  for (const char* text : {"1.5", "1,2,3", "1.23,4", "31.12.2024"}) {
    EXPECT_EQ(styled(text, NumberStyle::kComma), kNone) << text;
  }
}

TEST(CellFormat, HasNamesThatReadBack) {
  for (const char* name : {"number", "number:point", "number:comma", "category", "date", "date:dmy",
                           "boolean", "constant", "identifier", "text"}) {
    ASSERT_TRUE(parse_format(name)) << name;
    EXPECT_EQ(format_text(*parse_format(name)), name);
  }
  EXPECT_FALSE(parse_format("numbers"));
  EXPECT_FALSE(parse_format("date:ymd"));
}

TEST(CellFormat, CellsBecomeNumbers) {
  double value = 0;
  EXPECT_TRUE(parse_cell("Yes", {.kind = ColumnKind::kBoolean}, value));
  EXPECT_EQ(value, 1);
  EXPECT_TRUE(parse_cell(" FALSE ", {.kind = ColumnKind::kBoolean}, value));
  EXPECT_EQ(value, 0);
  EXPECT_FALSE(parse_cell("maybe", {.kind = ColumnKind::kBoolean}, value));
  EXPECT_TRUE(parse_cell("2000-01-11", {.kind = ColumnKind::kDate}, value));
  EXPECT_EQ(value, 10);
  EXPECT_FALSE(parse_cell("1,5", {}, value));
}

}  // namespace
}  // namespace fcp
