#include "fcp/data/npy.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/files.h"

namespace fcp {
namespace {

using namespace std::string_literals;
using testing::ElementsAre;

// An .npy as NumPy writes it: magic, version, length and dictionary, padded to 64 bytes.
std::string npy(const std::string& type, const std::string& shape, const std::string& data,
                const std::string& fortran = "False", char version = 1) {
  std::string text =
      "{'descr': '" + type + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
  const size_t prefix = version == 1 ? 10 : 12;
  while ((prefix + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  std::string length = {static_cast<char>(text.size() & 255), static_cast<char>(text.size() >> 8)};
  if (version > 1) length += "\0\0"s;
  return "\x93NUMPY"s + version + '\0' + length + text + data;
}

class Npy : public testing::Test {
 protected:
  Array read(const std::string& bytes) { return read_npy(folder_.write("t.npy", bytes)); }
  std::string error(const std::string& bytes) {
    return message_of(folder_, [&] { read(bytes); });
  }
  Folder folder_;
};

TEST_F(Npy, ReadsEveryTypeInBothByteOrders) {
  const auto values = [&](const std::string& type, const std::string& data) {
    return read(npy(type, "(2,)", data)).values;
  };
  EXPECT_THAT(values("<f4", "\0\0\xc0\x3f\0\0\x20\xc0"s), ElementsAre(1.5f, -2.5f));
  EXPECT_THAT(values(">f4", "\x3f\xc0\0\0\xc0\x20\0\0"s), ElementsAre(1.5f, -2.5f));
  EXPECT_THAT(values("<f8", "\0\0\0\0\0\0\xf8\x3f\0\0\0\0\0\0\x04\xc0"s), ElementsAre(1.5f, -2.5f));
  EXPECT_THAT(values(">f8", "\x3f\xf8\0\0\0\0\0\0\xc0\x04\0\0\0\0\0\0"s), ElementsAre(1.5f, -2.5f));
  EXPECT_THAT(values("<f2", "\0\x3e\0\xc1"s), ElementsAre(1.5f, -2.5f));
  EXPECT_THAT(values(">f2", "\x3e\0\xc1\0"s), ElementsAre(1.5f, -2.5f));
  EXPECT_THAT(values("|i1", "\x05\xfe"), ElementsAre(5, -2));
  EXPECT_THAT(values("|u1", "\x05\xfe"), ElementsAre(5, 254));
  EXPECT_THAT(values("|b1", "\x01\0"s), ElementsAre(1, 0));
  EXPECT_THAT(values("<i2", "\x01\x02\xfe\xff"), ElementsAre(513, -2));
  EXPECT_THAT(values(">i2", "\x02\x01\xff\xfe"), ElementsAre(513, -2));
  EXPECT_THAT(values("<u2", "\x01\x02\xfe\xff"), ElementsAre(513, 65534));
  EXPECT_THAT(values(">u2", "\x02\x01\xff\xfe"), ElementsAre(513, 65534));
  EXPECT_THAT(values("<i4", "\x01\0\x01\0\xfe\xff\xff\xff"s), ElementsAre(65537, -2));
  EXPECT_THAT(values(">i4", "\0\x01\0\x01\xff\xff\xff\xfe"s), ElementsAre(65537, -2));
  EXPECT_THAT(values("<u4", "\x01\0\x01\0\0\0\0\xff"s), ElementsAre(65537, 4278190080.f));
  EXPECT_THAT(values(">u4", "\0\x01\0\x01\xff\0\0\0"s), ElementsAre(65537, 4278190080.f));
  EXPECT_THAT(values("<i8", "\x01\0\x01\0\0\0\0\0\xfe\xff\xff\xff\xff\xff\xff\xff"s),
              ElementsAre(65537, -2));
  EXPECT_THAT(values(">i8", "\0\0\0\0\0\x01\0\x01\xff\xff\xff\xff\xff\xff\xff\xfe"s),
              ElementsAre(65537, -2));
  EXPECT_THAT(values("<u8", "\x01\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\xff"s),
              ElementsAre(65537, 18374686479671623680.f));
  EXPECT_THAT(values(">u8", "\0\0\0\0\0\x01\0\x01\xff\0\0\0\0\0\0\0"s),
              ElementsAre(65537, 18374686479671623680.f));
}

TEST_F(Npy, ReadsUnusualHalves) {
  const Array halves = read(npy("<f2", "(6,)", "\x01\0\xff\x03\0\x7c\0\xfc\xff\x7b\0\x80"s));
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_THAT(halves.values, ElementsAre(std::ldexp(1.f, -24), std::ldexp(1023.f, -24), infinity,
                                         -infinity, 65504, 0));
  EXPECT_TRUE(std::signbit(halves.values[5]));
  EXPECT_TRUE(std::isnan(read(npy("<f2", "(1,)", "\x01\x7c")).values[0]));
}

TEST_F(Npy, ReadsAllVersionsAndShapes) {
  for (const char version : {1, 2, 3}) {
    const Array array = read(npy("|u1", "(2, 3)", "abcdef", "False", version));
    EXPECT_THAT(array.shape, ElementsAre(2, 3));
    EXPECT_THAT(array.values, ElementsAre('a', 'b', 'c', 'd', 'e', 'f'));
  }
  EXPECT_TRUE(read(npy("|u1", "()", "a")).shape.empty());
  EXPECT_THAT(read(npy("|u1", "()", "a")).values, ElementsAre('a'));
  EXPECT_THAT(read(npy("|u1", "(0, 5)", "")).shape, ElementsAre(0, 5));
  EXPECT_THAT(read(npy("|u1", "(2L, 1L)", "ab")).shape, ElementsAre(2, 1));
}

TEST_F(Npy, ReadsFortranOrder) {
  EXPECT_THAT(read(npy("|u1", "(2, 3)", "\0\1\2\3\4\5"s, "True")).values,
              ElementsAre(0, 2, 4, 1, 3, 5));
  // [i, j, k] of shape [2, 3, 2] stands at i + 2 j + 6 k.
  EXPECT_THAT(read(npy("|u1", "(2, 3, 2)", "\0\1\2\3\4\5\6\7\x08\x09\x0a\x0b"s, "True")).values,
              ElementsAre(0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11));
}

TEST_F(Npy, StreamsRowsInEitherOrder) {
  std::string data, columns;
  for (int i = 0; i < 20; ++i) data += static_cast<char>(i);
  for (int j = 0; j < 2; ++j) {
    for (int i = 0; i < 10; ++i) columns += data[static_cast<size_t>(2 * i + j)];
  }
  for (const std::string& bytes :
       {npy("|u1", "(10, 2)", data), gzipped(npy("|u1", "(10, 2)", data)),
        npy("|u1", "(10, 2)", columns, "True")}) {
    NpyReader reader(folder_.write("t.npy", bytes));
    for (const size_t batch : {1, 3, 10, 100}) {
      reader.rewind();
      std::vector<float> all;
      Array some;
      while (reader.next(batch, some)) {
        EXPECT_LE(some.rows(), batch);
        EXPECT_EQ(some.values.size(), some.rows() * 2);
        all.insert(all.end(), some.values.begin(), some.values.end());
      }
      ASSERT_EQ(all.size(), 20u);
      for (size_t i = 0; i < 20; ++i) EXPECT_EQ(all[i], static_cast<float>(i));
    }
  }
}

// However many there are: they would be read for ever.
TEST_F(Npy, RefusesRowsWithoutNumbers) {
  NpyReader reader(folder_.write("t.npy", npy("<f4", "(122222222222, 1, 0)", "")));
  Array some;
  EXPECT_EQ(message_of(folder_, [&] { reader.next(10, some); }),
            "t.npy: shape [122222222222, 1, 0] has rows without numbers");
  NpyReader empty(folder_.write("e.npy", npy("<f4", "(0, 3)", "")));
  EXPECT_FALSE(empty.next(10, some));
}

TEST_F(Npy, RefusesWhatItCannotRead) {
  EXPECT_EQ(error(""),
            "t.npy: not an .npy file: begins with bytes (none), expected 93 4e 55 4d 50 59");
  EXPECT_EQ(error("a,b\n1,2\n"),
            "t.npy: not an .npy file: begins with bytes 61 2c 62 0a 31 2c, expected 93 4e 55 4d 50 "
            "59");
  EXPECT_EQ(error(npy("|u1", "(1,)", "a", "False", 4)),
            "t.npy: .npy format version 4, expected 1, 2 or 3");
  EXPECT_EQ(error(npy("|O", "(1,)", "a")),
            "t.npy: holds Python objects (type '|O'), expected numbers");
  EXPECT_EQ(error(npy("<c8", "(1,)", "abcdefgh")),
            "t.npy: unsupported type '<c8', expected f2, f4, f8, i1 … i8, u1 … u8 or b1");
  EXPECT_EQ(error(npy("<U5", "(1,)", "")),
            "t.npy: unsupported type '<U5', expected f2, f4, f8, i1 … i8, u1 … u8 or b1");
  EXPECT_EQ(error(npy("<f4", "(1, x)", "abcd")), "t.npy: bad shape (1, x) in the .npy header");
  EXPECT_EQ(error(npy("<f4", "(-1,)", "abcd")), "t.npy: bad shape (-1,) in the .npy header");
  EXPECT_EQ(error("\x93NUMPY\x01\0\x02\0{}"s), "t.npy: the .npy header has no 'descr'");
  EXPECT_EQ(error("\x93NUMPY\x01\0\x76\0{'descr'"s),
            "t.npy: truncated: the .npy header needs 118 bytes, found 8");
  EXPECT_EQ(error("\x93NUMPY\x02\0\xff\xff\xff\xff{'descr'"s),
            "t.npy: the .npy header declares 4294967295 bytes, expected at most 1048576");
  EXPECT_EQ(message_of(folder_, [&] { read_npy(folder_.path("none.npy")); }),
            "none.npy: no such file");
}

// Before anything is allocated: the last shape would take 16 TB.
TEST_F(Npy, RefusesTruncatedFiles) {
  EXPECT_EQ(error(npy("<f4", "(3, 4)", std::string(40, 'x'))),
            "t.npy: truncated: shape [3, 4] of float32 needs 48 bytes, found 40");
  EXPECT_EQ(error(gzipped(npy("<f4", "(3, 4)", std::string(40, 'x')))),
            "t.npy: truncated: the data end before shape [3, 4] of float32 is filled");
  EXPECT_EQ(
      error(npy("<f8", "(2000000000000,)", "abc")),
      "t.npy: truncated: shape [2000000000000] of float64 needs 16000000000000 bytes, found 3");
  EXPECT_EQ(error(gzipped(npy("<f8", "(2000000000000,)", "abc"))),
            "t.npy: truncated: the data end before shape [2000000000000] of float64 is filled");
  EXPECT_EQ(error(npy("|u1", "(9000000000000000000, 9)", "abc")),
            "t.npy: shape [9000000000000000000, 9] has too many elements for this machine");
}

TEST_F(Npy, RefusesBytesBehindTheArray) {
  EXPECT_EQ(error(npy("<f4", "(1,)", "abcde")),
            "t.npy: goes on behind its array; were two arrays saved into one file?");
  const std::string two = npy("<f4", "(1,)", "abcd") + npy("<f4", "(1,)", "abcd");
  EXPECT_EQ(error(two), "t.npy: goes on behind its array; were two arrays saved into one file?");
  EXPECT_EQ(error(gzipped(two)),
            "t.npy: goes on behind its array; were two arrays saved into one file?");
}

// 1e300, between numbers that fit, in both orders of a [3, 2] array; ∞ itself is a number.
TEST_F(Npy, RefusesDoublesBeyondSinglePrecision) {
  const auto bytes_of = [](std::initializer_list<double> values) {
    std::string bytes;
    for (const double value : values) {
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    return bytes;
  };
  EXPECT_EQ(error(npy("<f8", "(3, 2)", bytes_of({1, 2, 3, 1e300, 5, 6}))),
            "t.npy: row 1 (from 0) holds 1e+300, beyond what single precision holds");
  EXPECT_EQ(error(npy("<f8", "(3, 2)", bytes_of({1, 2, -1e39, 4, 5, 6}), "True")),
            "t.npy: row 2 (from 0) holds -1e+39, beyond what single precision holds");
  EXPECT_THAT(read(npy("<f8", "(2,)", bytes_of({-INFINITY, 3e38}))).values,
              ElementsAre(-INFINITY, 3e38f));
}

TEST_F(Npy, WritesWhatNumpyWrites) {
  const std::string path = folder_.path("t.npy");
  write_npy(path, Array{{2, 2}, {1, -2, 0.5f, 3}});
  const std::string bytes = read_file(path);
  EXPECT_EQ(bytes.substr(0, 10), "\x93NUMPY\x01\0\x76\0"s);
  EXPECT_TRUE(
      bytes.substr(10).starts_with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }"));
  EXPECT_EQ(bytes[127], '\n');
  EXPECT_EQ(bytes.size(), 128u + 16u);
  EXPECT_THAT(read_npy(path).values, ElementsAre(1, -2, 0.5f, 3));
}

TEST_F(Npy, WriterAppendsAndFixesTheCount) {
  const std::string path = folder_.path("t.npy");
  NpyWriter writer(path, {3}, NpyWriter::Type::kBool);
  const bool rows[] = {true, false, true, false, false, true};
  writer.append(std::span<const bool>(rows, 3));
  writer.append(std::span<const bool>(rows));
  EXPECT_FALSE(std::filesystem::exists(path)) << "before it is complete";
  writer.close();
  NpyReader reader(path);
  EXPECT_THAT(reader.shape(), ElementsAre(3, 3));
  EXPECT_EQ(reader.header().type.kind, 'b');
  EXPECT_THAT(reader.read_all().values, ElementsAre(1, 0, 1, 1, 0, 1, 0, 0, 1));
}

TEST_F(Npy, WriterRefusesMisuse) {
  NpyWriter writer(folder_.path("t.npy"), {2});
  EXPECT_EQ(message_of(folder_,
                       [&] {
                         writer.append(std::vector<float>{1, 2, 3});
                       }),
            "t.npy: 3 numbers are not a whole number of rows of 2");
  EXPECT_EQ(message_of(folder_,
                       [&] {
                         const bool bits[] = {true, false};
                         writer.append(std::span<const bool>(bits));
                       }),
            "t.npy: numbers of type |b1 appended, expected <f4");
  EXPECT_EQ(message_of(folder_,
                       [] {
                         write_npy("/dev/full", Array{{1}, {1}});
                       }),
            "/dev/full: cannot write: No space left on device");
}

}  // namespace
}  // namespace fcp
