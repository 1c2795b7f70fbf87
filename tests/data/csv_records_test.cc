#include "fcp/data/csv_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"

#include "tests/support/files.h"

namespace fcp {
namespace {

using testing::ElementsAre;
using Table = std::vector<std::vector<std::string>>;

Table table_of(CsvRecords& records) {
  Table table;
  while (records.next()) table.emplace_back(records.cells().begin(), records.cells().end());
  return table;
}

Table table_of(const std::string& text, char separator = ',') {
  const Folder folder;
  CsvRecords records(open_bytes(folder.write("t", text)), separator);
  return table_of(records);
}

TEST(CsvRecords, SplitsCellsAndLines) {
  const Table expected = {{"a", "b", ""}, {"", "", "c"}};
  EXPECT_EQ(table_of("a,b,\n,,c\n"), expected);
  EXPECT_EQ(table_of("a,b,\n,,c"), expected) << "no newline at the end";
  EXPECT_EQ(table_of("a,b,\r\n,,c\r\n"), expected) << "CRLF";
  EXPECT_EQ(table_of("\xef\xbb\xbf"
                     "a,b,\n,,c\n"),
            expected)
      << "byte order mark";
  EXPECT_EQ(table_of("\na,b,\n\n\r\n,,c\n\n"), expected) << "blank lines";
  EXPECT_EQ(table_of(""), Table{});
}

TEST(CsvRecords, UnderstandsQuotes) {
  EXPECT_EQ(table_of("\"a,b\",\"c\"\"d\"\n"), (Table{{"a,b", "c\"d"}}));
  EXPECT_EQ(table_of("\"x\ny\",\"\"\r\nz,\"\"\"\"\r\n"), (Table{{"x\ny", ""}, {"z", "\""}}));
  EXPECT_EQ(table_of("5\" pipe,b\n\"c\",d\"\"\n"), (Table{{"5\" pipe", "b"}, {"c", "d\"\""}}))
      << "a quote opens only at the beginning of a cell";
  EXPECT_EQ(table_of("a,\"\"\"b\"\"\""), (Table{{"a", "\"b\""}}));
  EXPECT_EQ(table_of("\"\"\n"), (Table{{""}})) << "not a blank line";
}

TEST(CsvRecords, RefusesBrokenQuotes) {
  const Folder folder;
  const auto reading = [&](const std::string& text) {
    return message_of(folder, [&] {
      CsvRecords records(open_bytes(folder.write("t", text)), ',');
      table_of(records);
    });
  };
  EXPECT_EQ(reading("a,b\nc,\"d\ne,f\n"), "t: line 2: a quote is opened and never closed");
  EXPECT_EQ(reading("a,\"b\"c\n"),
            "t: line 1: text follows the closing quote of column 1, expected a separator");
  EXPECT_EQ(reading(std::string("\xff\xfe"
                                "a\0",
                                4)),
            "t: is UTF-16 text, expected UTF-8; say encoding utf-16 (--encoding utf-16)");
}

// UTF-16 without a mark, binary files and damaged headers.
TEST(CsvRecords, RefusesNulBytes) {
  const Folder folder;
  const auto reading = [&](const std::string& text) {
    return message_of(folder, [&] {
      CsvRecords records(open_bytes(folder.write("t", text)), ',');
      table_of(records);
    });
  };
  const std::string complaint = "holds a NUL byte, expected UTF-8 text; is it UTF-16?";
  EXPECT_EQ(reading(std::string("a\0,\0b\0\n\0", 8)), "t: line 1: " + complaint);
  EXPECT_EQ(reading(std::string("na\0me,b\n1,2\n", 12)), "t: line 1: " + complaint);
  EXPECT_EQ(reading(std::string("a,b\n1,2\n\"x\0\",2\n", 15)), "t: line 3: " + complaint);
}

// A few kilobytes of gzip can hold gigabytes of newlines.
TEST(CsvRecords, RefusesTablesOfOtherPrograms) {
  for (const auto& [start, kind] :
       {std::pair<std::string, std::string>("PAR1\x15\x04", "a Parquet file"),
        {"ARROW1", "an Arrow file"},
        {"PK\x03\x04", "a workbook"}}) {
    EXPECT_THAT(
        [&start = start] { table_of(start); },
        testing::ThrowsMessage<Error>(testing::HasSubstr("/t: is " + kind +
                                                         ", which fcp does not read; write it as "
                                                         "CSV first, as by pandas: pandas.read_")));
  }
  EXPECT_EQ(table_of("PAR,1\n").size(), 1u);
}

TEST(CsvRecords, RefusesEndlessEmptyLines) {
  const Folder folder;
  EXPECT_EQ(table_of("a,b\n" + std::string(1000000, '\n') + "1,2\n").size(), 2u);
  EXPECT_EQ(message_of(folder,
                       [&] {
                         CsvRecords records(open_bytes(
                             folder.write("t", "a,b\n" + std::string(1000001, '\n') + "1,2\n")));
                         table_of(records);
                       }),
            "t: line 1000002: more than 1000000 empty lines in a row");
}

// A few kilobytes of gzip hold ten million commas, and each cell takes memory.
TEST(CsvRecords, RefusesRowsOfTooManyCells) {
  const std::string widest(kMostCells - 1, ',');
  EXPECT_EQ(table_of("a\n" + widest + "\n")[1].size(), kMostCells);
  const Folder folder;
  for (const std::string more : {",", ",\"\"", "\"a\","}) {
    EXPECT_EQ(message_of(folder,
                         [&] {
                           CsvRecords records(
                               open_bytes(folder.write("t", "a\n" + more + widest + ",,\n")), ',');
                           table_of(records);
                         }),
              "t: line 2: a row of more than 262144 cells, expected fewer; wider tables are read "
              "from .npy");
  }
  // Separators inside quotes make no cells.
  EXPECT_EQ(table_of("\"" + widest + ",,,\",b\n")[0].size(), 2U);
}

TEST(CsvRecords, CountsLinesAsAnEditorDoes) {
  const Folder folder;
  CsvRecords records(open_bytes(folder.write("t", "a\n\n\"b\nb\"\nc\n")), ',');
  std::vector<size_t> lines;
  while (records.next()) lines.push_back(records.line());
  EXPECT_THAT(lines, ElementsAre(1, 3, 5));
}

TEST(CsvRecords, DetectsTheSeparator) {
  const Folder folder;
  const auto detected = [&](const std::string& text) {
    return CsvRecords(open_bytes(folder.write("t", text))).separator();
  };
  EXPECT_EQ(detected("a,b\n"), ',');
  EXPECT_EQ(detected("a;b;\"x,y,z\"\n"), ';');
  EXPECT_EQ(detected("\n\na\tb\n1,2,3\n"), '\t');
  EXPECT_EQ(detected("a|b|c\n"), '|');
  EXPECT_EQ(detected("a;b,c\n"), ',');
  EXPECT_EQ(detected("a\n"), ',');
}

// Cells of random letters, among them all that are special, survive being quoted and read back
// through blocks that end anywhere, plain and packed, after rewinding too.
TEST(CsvRecords, ReadsBackRandomTables) {
  const Folder folder;
  Random random(4);
  const std::string letters = "ab,;\"\n\r 1.";
  for (int trial = 0; trial < 60; ++trial) {
    const bool crlf = trial % 2 == 1;
    const uint64_t longest = trial % 30 == 0 ? 30000 : 12;  // files of several blocks, or small
    const uint64_t columns = 2 + random.below(5);
    Table table;
    std::string text;
    for (uint64_t i = 0; i < 40; ++i) {
      auto& row = table.emplace_back();
      for (uint64_t j = 0; j < columns; ++j) {
        std::string cell, quoted;
        for (uint64_t k = random.below(longest); k > 0; --k) cell += letters[random.below(10)];
        for (const char c : cell) quoted.append(c == '"' ? 2 : 1, c);
        const bool plain = cell.find_first_of(",\"\n\r") == std::string::npos && random.below(2);
        text += (j > 0 ? "," : "") + (plain ? cell : "\"" + quoted + "\"");
        row.push_back(cell);
      }
      text += crlf ? "\r\n" : "\n";
    }
    folder.write("plain", text);
    folder.write("packed", gzipped(text));
    for (const char* name : {"plain", "packed"}) {
      CsvRecords records(open_bytes(folder.path(name)), ',');
      ASSERT_EQ(table_of(records), table);
      records.rewind();
      ASSERT_EQ(table_of(records), table);
    }
  }
}

// Rows longer than a block, and rows that straddle the blocks' borders.
TEST(CsvRecords, ReadsRowsLongerThanABlock) {
  std::string text;
  for (int i = 0; i < 3; ++i) text += std::string(1500000, static_cast<char>('a' + i)) + ",x\n";
  const Table table = table_of(text);
  ASSERT_EQ(table.size(), 3u);
  EXPECT_EQ(table[2], (std::vector<std::string>{std::string(1500000, 'c'), "x"}));
}

}  // namespace
}  // namespace fcp
