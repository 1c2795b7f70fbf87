#include "fcp/data/npy_column.h"

#include <cstdint>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/files.h"

namespace fcp {
namespace {

using namespace std::string_literals;
using testing::ElementsAre;

std::string column_file(const std::string& type, const std::string& shape,
                        const std::string& data) {
  std::string text =
      "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
  return "\x93NUMPY\x01\0"s + static_cast<char>(text.size()) + '\0' + text + data;
}

template <typename Number>
std::string bytes_of(std::initializer_list<Number> values) {
  std::string bytes;
  for (const Number value : values) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return bytes;
}

class NpyColumn : public testing::Test {
 protected:
  std::vector<std::string> read(const std::string& bytes) {
    return read_npy_column(folder_.write("g.npy", bytes));
  }
  std::string error(const std::string& bytes) {
    return message_of(folder_, [&] { read(bytes); });
  }
  Folder folder_;
};

// Neither float32 nor six printed digits would keep these apart.
TEST_F(NpyColumn, IntegersAreExact) {
  EXPECT_THAT(
      read(column_file("<i8", "(4,)", bytes_of<int64_t>({1000001, 1000002, INT64_MIN, INT64_MAX}))),
      ElementsAre("1000001", "1000002", "-9223372036854775808", "9223372036854775807"));
  EXPECT_THAT(read(column_file("<u8", "(1, 1)", bytes_of<uint64_t>({UINT64_MAX}))),
              ElementsAre("18446744073709551615"));
  EXPECT_THAT(read(column_file(">i2", "(2,)", "\xff\xfe\0\x07"s)), ElementsAre("-2", "7"));
  EXPECT_THAT(read(column_file("|i1", "(1,)", "\x80")), ElementsAre("-128"));
  EXPECT_THAT(read(column_file("|b1", "(2,)", "\x01\0"s)), ElementsAre("1", "0"));
}

TEST_F(NpyColumn, TextIsTakenAsItIs) {
  EXPECT_THAT(read(column_file("|S3", "(3,)", "ab\0abc\0\0\0"s)), ElementsAre("ab", "abc", ""));
  EXPECT_THAT(read(column_file("<U2", "(2,)", bytes_of<uint32_t>({'a', 0x1f600, 0xe9, 0}))),
              ElementsAre("a\xf0\x9f\x98\x80", "\xc3\xa9"));
  EXPECT_EQ(error(column_file("|S1", "(1,)", "\xff")), "g.npy: row 0 (from 0) is not UTF-8 text");
}

TEST_F(NpyColumn, FloatingPointNumbersMustBeWholeAndExact) {
  EXPECT_THAT(read(column_file("<f8", "(2,)", bytes_of<double>({9007199254740992.0, -3}))),
              ElementsAre("9007199254740992", "-3"));
  EXPECT_THAT(read(column_file("<f2", "(1,)", "\0\x42"s)), ElementsAre("3"));
  EXPECT_EQ(error(column_file("<f4", "(2,)", bytes_of<float>({1, 0.5}))),
            "g.npy: row 1 (from 0) is 0.5, expected text, integers, or whole numbers up to "
            "1.67772e+07");
  EXPECT_EQ(error(column_file("<f4", "(1,)", bytes_of<float>({16777218}))),
            "g.npy: row 0 (from 0) is 1.67772e+07, expected text, integers, or whole numbers up to "
            "1.67772e+07");
}

TEST_F(NpyColumn, RefusesWhatIsNoColumn) {
  EXPECT_EQ(error(column_file("<i4", "(1, 2)", "abcdefgh")),
            "g.npy: shape [1, 2], expected one column, [N] or [N, 1]");
  EXPECT_EQ(error(column_file("<i4", "(2,)", "abcd")),
            "g.npy: truncated: shape [2] of int32 needs 8 bytes, found 4");
}

}  // namespace
}  // namespace fcp
