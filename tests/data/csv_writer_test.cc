#include "fcp/data/csv_writer.h"

#include <cmath>
#include <filesystem>
#include <limits>

#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/data/bytes.h"
#include "fcp/data/rows.h"

#include "tests/support/files.h"

namespace fcp {
namespace {

constexpr float kInfiniteFloat = std::numeric_limits<float>::infinity();

void write_row(CsvWriter& writer, const std::vector<float>& numbers) {
  for (const float number : numbers) writer.cell(number);
  writer.end_row();
}

TEST(CsvWriter, WritesNumbersAndText) {
  const Folder folder;
  CsvWriter writer(folder.path("t.csv"), {"a", "b,c", "d\"e"});
  write_row(writer, {0.1f, kInfiniteFloat, -kInfiniteFloat});
  writer.cell(int64_t{-7});
  writer.cell(std::string_view("two\nlines"));
  writer.cell(std::string_view(""));
  writer.end_row();
  EXPECT_FALSE(std::filesystem::exists(folder.path("t.csv"))) << "before it is complete";
  writer.close();
  EXPECT_EQ(read_file(folder.path("t.csv")),
            "a,\"b,c\",\"d\"\"e\"\n0.1,inf,-inf\n-7,\"two\nlines\",\n");
}

TEST(CsvWriter, RefusesEndingsOfOtherTables) {
  const Folder folder;
  for (const char* name : {"t.parquet", "t.feather", "t.arrow", "t.xlsx"}) {
    EXPECT_THROW(CsvWriter(folder.path(name), {"a"}), Error) << name;
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(CsvWriter, LeavesNothingBehindWhenNotClosed) {
  const Folder folder;
  {
    CsvWriter writer(folder.path("t.csv"), {"a"});
    write_row(writer, {1});
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

// Numbers, text that is quoted and text that is not; some rows are longer than others.
void write_cells(size_t row, CsvText& text) {
  text.cell(0.1f * static_cast<float>(row % 1000));
  text.cell(static_cast<int64_t>(row));
  const std::string word = row % 7 == 0 ? "a,\"b\"" : std::string(row % 50, 'x');
  text.cell(std::string_view(word));
}

TEST(CsvWriter, WritesTheSameBytesOnAnyNumberOfThreads) {
  const Folder folder;
  for (const size_t rows : {0, 1, 2048, 2049, 20001}) {
    std::string expected = "a,b,c\n";
    CsvText text(3, "");
    for (size_t row = 0; row < rows; ++row) {
      write_cells(row, text);
      text.end_row();
    }
    expected += text.text();
    for (const size_t threads : {1, 2, 5}) {
      CsvWriter writer(folder.path("t.csv"), {"a", "b", "c"}, threads);
      writer.rows(rows / 2, write_cells);
      writer.rows(rows - rows / 2,
                  [&](size_t row, CsvText& out) { write_cells(rows / 2 + row, out); });
      writer.close();
      EXPECT_EQ(read_file(folder.path("t.csv")), expected) << rows << " rows, " << threads;
    }
  }
}

TEST(CsvWriter, KeepsTheOrderOfSingleRowsAndMany) {
  const Folder folder;
  CsvWriter writer(folder.path("t.csv"), {"a"}, 3);
  write_row(writer, {1});
  writer.rows(2, [](size_t row, CsvText& text) { text.cell(static_cast<int64_t>(2 + row)); });
  write_row(writer, {4});
  writer.close();
  EXPECT_EQ(read_file(folder.path("t.csv")), "a\n1\n2\n3\n4\n");
}

TEST(CsvWriter, RefusesAnotherWidthAmongManyRows) {
  const Folder folder;
  CsvWriter writer(folder.path("t.csv"), {"a"}, 3);
  const auto write = [](size_t row, CsvText& text) {
    text.cell(1.0f);
    if (row == 9000) text.cell(2.0f);
  };
  EXPECT_EQ(message_of(folder, [&] { writer.rows(10000, write); }),
            "t.csv: a row of 2 cells, expected 1");
}

TEST(CsvWriter, RefusesRowsOfAnotherWidth) {
  const Folder folder;
  CsvWriter writer(folder.path("t.csv"), {"a", "b"});
  EXPECT_EQ(message_of(folder, [&] { write_row(writer, {1}); }),
            "t.csv: a row of 1 cells, expected 2");
}

TEST(CsvWriter, SaysWhenTheDiskIsFull) {
  const Folder folder;
  EXPECT_EQ(message_of(folder,
                       [] {
                         CsvWriter writer("/dev/full", {"a"});
                         for (int i = 0; i < 100000; ++i) write_row(writer, {1});
                         writer.close();
                       }),
            "/dev/full: cannot write: No space left on device");
}

TEST(CsvWriter, RandomSetsReadBackExactly) {
  const Folder folder;
  Random random(6);
  DataSet set{"", {"a", "b b", "c,c"}, {"y"}, zeros({500, 3}), zeros({500, 1})};
  for (float& value : set.x.values) {
    value = static_cast<float>(random.normal() * std::pow(10, random.normal() * 8));
  }
  for (float& value : set.y.values) value = random.below(3) ? 1.5f : -3e38f;
  write_csv(folder.path("t.csv"), set);
  const Rows rows = read_all(*open_rows(folder.path("t.csv"), "y"));
  EXPECT_EQ(rows.x.values, set.x.values);
  EXPECT_EQ(rows.y.values, set.y.values);
}

TEST(CsvWriter, PacksWhereTheNameSaysSo) {
  const Folder folder;
  std::string rows;
  {
    CsvWriter writer(folder.path("t.csv.gz"), {"a", "b"});
    for (int i = 0; i < 30000; ++i) {
      writer.cell(int64_t{i});
      writer.cell(std::string_view("x,y"));
      writer.end_row();
      rows += concat(i, ",\"x,y\"\n");
    }
    writer.close();
  }
  const auto bytes = open_bytes(folder.path("t.csv.gz"));
  std::string text(rows.size() + 100, '\0');
  text.resize(bytes->read(text.data(), text.size()));
  EXPECT_EQ(text, "a,b\n" + rows);
  EXPECT_LT(std::filesystem::file_size(folder.path("t.csv.gz")), rows.size() / 2);
}

TEST(JsonRows, WritesTheCellsOfACsvFile) {
  const Folder folder;
  JsonRows rows(folder.path("t.json"), {"a", "b \"c\"", "labels"});
  rows.cell(0.1f);
  rows.cell(int64_t{3});
  rows.list({"x", "y\n"});
  rows.end_row();
  rows.cell(-std::numeric_limits<float>::infinity());
  rows.cell(std::string_view("ü"));
  rows.list({});
  EXPECT_THROW(rows.cell(1.0f), Error);
  rows.end_row();
  rows.close();
  const auto bytes = open_bytes(folder.path("t.json"));
  std::string text(1000, '\0');
  text.resize(bytes->read(text.data(), text.size()));
  EXPECT_EQ(text,
            "[\n {\"a\": 0.1, \"b \\\"c\\\"\": 3, \"labels\": [\"x\", \"y\\n\"]},\n"
            " {\"a\": \"-inf\", \"b \\\"c\\\"\": \"ü\", \"labels\": []}\n]\n");
}

}  // namespace
}  // namespace fcp
