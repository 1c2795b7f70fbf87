#include "fcp/data/text_encoding.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/files.h"

namespace fcp {
namespace {

using ::testing::HasSubstr;

std::string read_text(const std::string& path, TextEncoding encoding) {
  const auto bytes = open_text(path, encoding);
  std::string text(1000, '\0');
  text.resize(bytes->read(text.data(), text.size()));
  bytes->rewind();
  std::string again(1, '\0');
  if (bytes->read(again.data(), 1) == 1) {
    EXPECT_EQ(again[0], text[0]) << "from the beginning";
  }
  return text;
}

TEST(TextEncoding, Cp1252) {
  const Folder folder;
  const std::string path = folder.write("t.csv", "caf\xe9,5 \x80\xff\n");
  EXPECT_EQ(read_text(path, TextEncoding::kCp1252), "café,5 €ÿ\n");
  const std::string bad = folder.write("bad.csv", "ab\x81");
  EXPECT_THAT(message_of(folder, [&] { read_text(bad, TextEncoding::kCp1252); }),
              HasSubstr("byte 2 is 129, which is no letter of cp1252"));
}

TEST(TextEncoding, Utf16OfBothOrders) {
  const Folder folder;
  const std::string little(
      "\xff\xfe"
      "a\0\xac\x20=\xd8\x00\xde",
      10);  // a, €, a smile
  const std::string big("\xfe\xff\0a\x20\xac\xd8=\xde\x00", 10);
  EXPECT_EQ(read_text(folder.write("l.csv", little), TextEncoding::kUtf16), "a€😀");
  EXPECT_EQ(read_text(folder.write("b.csv", big), TextEncoding::kUtf16), "a€😀");
  EXPECT_EQ(read_text(folder.write("n.csv", little.substr(2)), TextEncoding::kUtf16), "a€😀");
  const std::string cut = folder.write("c.csv", little.substr(0, 9));
  EXPECT_THAT(message_of(folder, [&] { read_text(cut, TextEncoding::kUtf16); }),
              HasSubstr("ends within a letter"));
}

TEST(TextEncoding, Names) {
  EXPECT_EQ(parse_text_encoding("latin-1"), TextEncoding::kCp1252);
  const Folder folder;
  EXPECT_THAT(message_of(folder, [] { parse_text_encoding("ebcdic"); }),
              HasSubstr("found 'ebcdic', expected utf-8, cp1252"));
}

}  // namespace
}  // namespace fcp
