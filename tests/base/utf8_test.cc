#include "fcp/base/utf8.h"

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
}  // namespace fcp
