#include "fcp/base/printable.h"

#include <gtest/gtest.h>

#include "fcp/base/shell_word.h"

namespace fcp {
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

TEST(ShellWord, QuotesWhatAShellWouldRead) {
  EXPECT_EQ(shell_word("price_2"), "price_2");
  EXPECT_EQ(shell_word("my price"), "'my price'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace fcp
