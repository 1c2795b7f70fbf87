#include "fcp/data/number.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "fcp/base/random.h"
#include "fcp/base/special_numbers.h"

namespace fcp {
namespace {

double parsed(const std::string& text) {
  double value = std::nan("");
  EXPECT_TRUE(parse_number(text, value)) << text;
  return value;
}

TEST(Number, ReadsTheUsualForms) {
  EXPECT_EQ(parsed("0"), 0);
  EXPECT_EQ(parsed("-2.5e3"), -2500);
  EXPECT_EQ(parsed("+.5"), 0.5);
  EXPECT_EQ(parsed("7."), 7);
  EXPECT_EQ(parsed("1E-2"), 0.01);
  EXPECT_EQ(parsed("  3 "), 3);
  EXPECT_TRUE(std::signbit(parsed("-0")));
  EXPECT_EQ(parsed("inf"), kInfinity);
  EXPECT_EQ(parsed("-Infinity"), -kInfinity);
  EXPECT_EQ(parsed("+1e999999999999999999999"), kInfinity);
  EXPECT_EQ(parsed("-1e400"), -kInfinity);
  EXPECT_EQ(parsed("1e-400"), 0);
  EXPECT_EQ(parsed("0." + std::string(400, '0') + "1"), 0);
  EXPECT_EQ(parsed(std::string(400, '9')), kInfinity);
}

TEST(Number, RefusesTheRest) {
  for (const char* text : {"",  " ",  "x",  "1x",  "1 2",  "1,5", "--1", "+-1", "+",     "-",
                           ".", "e5", "1e", "1e+", "0x10", "nan", "NaN", "?",   "1.2.3", "inf1"}) {
    double value;
    EXPECT_FALSE(parse_number(text, value)) << text;
  }
}

// Correct rounding against the C library, over digits and exponents on both sides of the limits of
// the fast path.
TEST(Number, AgreesWithStrtodToTheBit) {
  Random random(1);
  for (int i = 0; i < 300000; ++i) {
    std::string text = random.below(2) ? "-" : "";
    const uint64_t digits = 1 + random.below(21);
    const uint64_t point = random.below(digits + 1);
    for (uint64_t d = 0; d < digits; ++d) {
      if (d == point) text += '.';
      text += static_cast<char>('0' + random.below(10));
    }
    if (random.below(2)) text += "e" + std::to_string(static_cast<int>(random.below(61)) - 30);
    const double expected = std::strtod(text.c_str(), nullptr);
    const double found = parsed(text);
    ASSERT_EQ(std::memcmp(&expected, &found, sizeof found), 0) << text;
  }
}

TEST(Number, KnowsMissingValues) {
  for (const char* text : {"", "NA", "NaN", "nan", "?", "null", " NA ", "  ", "N/A"}) {
    EXPECT_TRUE(is_missing(text)) << text;
  }
  for (const char* text : {"0", "na.", "none", "-", "NAN1"}) EXPECT_FALSE(is_missing(text)) << text;
}

TEST(Number, WritesTheShortestTextThatReadsBack) {
  EXPECT_EQ(number_text(0.1f), "0.1");
  EXPECT_EQ(number_text(-3), "-3");
  EXPECT_EQ(number_text(std::numeric_limits<float>::infinity()), "inf");
  EXPECT_EQ(number_text(-std::numeric_limits<float>::infinity()), "-inf");
  EXPECT_EQ(number_text(-std::nanf("")), "nan");
  Random random(2);
  for (int i = 0; i < 100000; ++i) {
    const uint32_t bits = static_cast<uint32_t>(random.bits());
    float value;
    std::memcpy(&value, &bits, 4);
    if (!std::isfinite(value)) continue;
    ASSERT_EQ(static_cast<float>(parsed(number_text(value))), value) << number_text(value);
  }
}

}  // namespace
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
