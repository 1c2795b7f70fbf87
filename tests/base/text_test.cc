#include "fcp/base/text.h"

#include <gtest/gtest.h>

namespace fcp {
namespace {

TEST(Utf8, AcceptsEveryLength) {
  for (const char* text : {"", "plain", "Größe", "年龄", "\U0001F600", "\u07ff\u0800\uffff",
                           "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf", "\xee\x80\x80"}) {
    EXPECT_TRUE(is_utf8(text)) << text;
  }
  EXPECT_TRUE(is_utf8(std::string_view("a\0b", 3)));
}

TEST(Utf8, RefusesWhatIsNot) {
  for (const char* text : {"Gr\xf6\xdf"
                           "e",                 // Latin-1
                           "\x80",              // a continuation alone
                           "\xc3",              // cut short
                           "\xe2\x82",          // cut short
                           "\xc0\x80",          // overlong zero
                           "\xe0\x9f\xbf",      // overlong
                           "\xf0\x8f\xbf\xbf",  // overlong
                           "\xed\xa0\x80",      // surrogate
                           "\xf4\x90\x80\x80",  // beyond U+10FFFF
                           "\xf5\x80\x80\x80", "\xff"}) {
    EXPECT_FALSE(is_utf8(text)) << text;
  }
}

}  // namespace
namespace {

TEST(Printable, ShowsControlCharactersAsText) {
  EXPECT_EQ(printable("plain, größer\tand\nlonger"), "plain, größer\tand\nlonger");
  EXPECT_EQ(printable("a\x1b[31mred\x07"), "a\\x1b[31mred\\x07");
  EXPECT_EQ(printable(std::string_view("n\0r\r\x7f", 5)), "n\\x00r\\x0d\\x7f");
  EXPECT_EQ(printable("csi\xc2\x9b"
                      "2J"),
            "csi\\x9b2J");  // C1 in UTF-8
  EXPECT_EQ(printable("\xc2\xa0\xc2"), "\xc2\xa0\xc2");
}

TEST(NearestWord, AllowsAThirdOfTheLettersToDiffer) {
  const std::vector<std::string> options = {"--alpha", "--data", "--out", "--score", "--time"};
  EXPECT_EQ(nearest_word("--alfa", options), "--alpha");
  EXPECT_EQ(nearest_word("--dta", options), "--data");
  EXPECT_EQ(nearest_word("--socre=nested", options), "--score");
  EXPECT_EQ(nearest_word("--outt", options), "--out");
  EXPECT_EQ(nearest_word("--side", options), "");
  EXPECT_EQ(nearest_word("--colour", options), "");
  EXPECT_EQ(nearest_word("o", options), "");
}

TEST(ShellWord, QuotesWhatAShellWouldRead) {
  EXPECT_EQ(shell_word("price_2"), "price_2");
  EXPECT_EQ(shell_word("my price"), "'my price'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace fcp
