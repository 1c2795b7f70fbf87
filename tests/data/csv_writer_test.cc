#include "fcp/data/csv_writer.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/data/rows.h"

#include "tests/support/files.h"

namespace fcp {
namespace {

constexpr float kInfiniteFloat = std::numeric_limits<float>::infinity();

TEST(CsvWriter, WritesNumbersAndText) {
  const Folder folder;
  CsvWriter writer(folder.path("t.csv"), {"a", "b,c", "d\"e"});
  writer.row(std::vector<float>{0.1f, kInfiniteFloat, -kInfiniteFloat});
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
  CsvWriter(folder.path("t.csv"), {"a"}).row(std::vector<float>{1});
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(CsvWriter, RefusesRowsOfAnotherWidth) {
  const Folder folder;
  CsvWriter writer(folder.path("t.csv"), {"a", "b"});
  EXPECT_EQ(message_of(folder, [&] { writer.row(std::vector<float>{1}); }),
            "t.csv: a row of 1 cells, expected 2");
}

TEST(CsvWriter, SaysWhenTheDiskIsFull) {
  const Folder folder;
  EXPECT_EQ(message_of(folder,
                       [] {
                         CsvWriter writer("/dev/full", {"a"});
                         for (int i = 0; i < 100000; ++i) writer.row(std::vector<float>{1});
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

}  // namespace
}  // namespace fcp
