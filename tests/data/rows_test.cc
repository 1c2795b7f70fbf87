#include "fcp/data/rows.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/data/npy.h"

#include "tests/support/files.h"

namespace fcp {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Rows, OfACsvFile) {
  const Folder folder;
  const std::string text = "a,y,b\n1,2,3\n4,5,6\n7,8,9\n";
  for (const std::string& bytes : {text, gzipped(text)}) {
    const auto source = open_rows(folder.write("t.data", bytes), "y");
    EXPECT_THAT(source->column_names(), ElementsAre("a", "b"));
    EXPECT_THAT(source->target_names(), ElementsAre("y"));
    EXPECT_THAT(source->row_shape(), ElementsAre(2));
    EXPECT_EQ(source->target_count(), 1u);
    ASSERT_NE(source->encoding(), nullptr);
    EXPECT_THAT(source->encoding()->columns, ElementsAre("a", "b"));
    Rows rows;
    ASSERT_TRUE(source->next(2, rows));
    EXPECT_EQ(rows.first_row, 0u);
    ASSERT_TRUE(source->next(2, rows));
    EXPECT_EQ(rows.first_row, 2u);
    EXPECT_THAT(rows.x.values, ElementsAre(7, 9));
    EXPECT_FALSE(source->next(2, rows));
    EXPECT_EQ(source->size(), 3u);
    const Rows all = read_all(*source);
    EXPECT_THAT(all.x.shape, ElementsAre(3, 2));
    EXPECT_THAT(all.y.values, ElementsAre(2, 5, 8));
  }
}

TEST(Rows, OfNpyFiles) {
  const Folder folder;
  write_npy(folder.path("x.npy"), Array{{3, 2, 1}, {1, 2, 3, 4, 5, 6}});
  write_npy(folder.path("y.npy"), Array{{3}, {7, 8, 9}});
  const auto source = open_rows(folder.path("x.npy"), folder.path("y.npy"));
  EXPECT_EQ(source->size(), 3u);
  EXPECT_THAT(source->row_shape(), ElementsAre(2, 1));
  EXPECT_EQ(source->target_count(), 1u);
  EXPECT_EQ(source->encoding(), nullptr);
  Rows rows;
  ASSERT_TRUE(source->next(2, rows));
  EXPECT_THAT(rows.x.shape, ElementsAre(2, 2, 1));
  EXPECT_THAT(rows.y.shape, ElementsAre(2, 1));
  ASSERT_TRUE(source->next(2, rows));
  EXPECT_EQ(rows.first_row, 2u);
  EXPECT_THAT(rows.x.values, ElementsAre(5, 6));
  EXPECT_THAT(rows.y.values, ElementsAre(9));
  EXPECT_FALSE(source->next(2, rows));
  EXPECT_THAT(read_all(*source).y.values, ElementsAre(7, 8, 9));
  EXPECT_THAT(read_all(*open_rows(folder.path("y.npy"), "")).x.shape, ElementsAre(3, 1));
  EXPECT_THAT(read_all(*open_rows(folder.path("y.npy"), "")).y.shape, IsEmpty());
}

TEST(Rows, ReadsManyBatches) {
  const Folder folder;
  Array x = zeros({10000, 3});
  for (size_t i = 0; i < x.values.size(); ++i) x.values[i] = static_cast<float>(i);
  write_npy(folder.path("x.npy"), x);
  const Rows all = read_all(*open_rows(folder.path("x.npy"), folder.path("x.npy")));
  EXPECT_EQ(all.x.values, x.values);
  EXPECT_EQ(all.y.values, x.values);
  EXPECT_THAT(all.y.shape, ElementsAre(10000, 3));
}

TEST(Rows, RefusesFilesThatDoNotFit) {
  const Folder folder;
  write_npy(folder.path("x.npy"), Array{{3, 2}, {1, 2, 3, 4, 5, std::nanf("")}});
  write_npy(folder.path("y.npy"), Array{{2}, {7, 8}});
  folder.write("y.csv", "y\n1\n2\n3\n");
  const auto reading = [&](const std::string& data, const std::string& target) {
    return message_of(folder, [&] { read_all(*open_rows(folder.path(data), target)); });
  };
  EXPECT_EQ(reading("x.npy", folder.path("y.npy")), "y.npy: found 2 rows, expected 3 as in x.npy");
  EXPECT_EQ(reading("x.npy", "price"),
            "price: no such file; with .npy data the target is an .npy too");
  EXPECT_EQ(
      reading("x.npy", folder.path("y.csv")),
      "y.csv: not an .npy file: begins with bytes 79 0a 31 0a 32 0a, expected 93 4e 55 4d 50 59");
  EXPECT_EQ(reading("x.npy", ""),
            "x.npy: row 2, element 1 (both from 0): found NaN, expected a number");
  const float infinity = std::numeric_limits<float>::infinity();
  write_npy(folder.path("i.npy"), Array{{2, 2}, {1, 2, -infinity, 4}});
  EXPECT_EQ(reading("i.npy", ""),
            "i.npy: row 1, element 0 (both from 0): found -inf, expected a finite number");
  EXPECT_EQ(reading("none.csv", ""), "none.csv: no such file");
  EXPECT_EQ(reading("x.npy:a", ""), "x.npy: not an .npz archive, but an entry of it is asked for");
}

TEST(Rows, OfSeveralFilesAreOneList) {
  const Folder folder;
  folder.write("1.csv", "a,c,y\n1,u,2\n3,v,4\n");
  folder.write("2.csv", "c,a,y\nv,5,6\n");  // columns by name, categories of the first file
  folder.write("3.csv", "a,c,y\n7,u,8\n9,u,10\n");
  const std::string files =
      folder.path("1.csv") + "," + folder.path("2.csv") + "," + folder.path("3.csv");
  CsvOptions options;
  options.categorical = {"c"};
  const auto source = open_rows(files, "y", options);
  const Rows all = read_all(*source);
  EXPECT_THAT(all.x.values, ElementsAre(1, 1, 0, 3, 0, 1, 5, 0, 1, 7, 1, 0, 9, 1, 0));
  EXPECT_THAT(all.y.values, ElementsAre(2, 4, 6, 8, 10));
  Rows rows;
  source->rewind();
  EXPECT_EQ(source->skip(1), 1u);
  ASSERT_TRUE(source->next(3, rows));  // of all three files
  EXPECT_EQ(rows.first_row, 1u);
  EXPECT_THAT(rows.y.values, ElementsAre(4, 6, 8));
  EXPECT_EQ(source->skip(5), 1u);
  EXPECT_FALSE(source->next(1, rows));
  source->rewind();
  EXPECT_EQ(source->skip(4), 4u);
  ASSERT_TRUE(source->next(9, rows));
  EXPECT_THAT(rows.y.values, ElementsAre(10));
}

TEST(Rows, OfSeveralArraysMustFit) {
  const Folder folder;
  write_npy(folder.path("a.npy"), Array{{2, 2}, {1, 2, 3, 4}});
  write_npy(folder.path("b.npy"), Array{{1, 2}, {5, 6}});
  write_npy(folder.path("c.npy"), Array{{1, 3}, {5, 6, 7}});
  write_npy(folder.path("y.npy"), Array{{2}, {1, 2}});
  write_npy(folder.path("z.npy"), Array{{1}, {3}});
  const std::string a = folder.path("a.npy"), b = folder.path("b.npy"), y = folder.path("y.npy");
  const auto source = open_rows(a + "," + b, y + "," + folder.path("z.npy"));
  EXPECT_EQ(source->size(), 3u);
  EXPECT_THAT(read_all(*source).y.values, ElementsAre(1, 2, 3));
  EXPECT_EQ(message_of(folder, [&] { open_rows(a + "," + b, y); }),
            "found 1 files of targets for 2 files of rows");
  EXPECT_EQ(message_of(folder, [&] { open_rows(a + "," + folder.path("c.npy"), ""); }),
            "c.npy: rows of shape [3] with 0 targets, expected [2] with 0 as in a.npy");
}

// Rows that are skipped are those that reading would have given, whatever the file is.
TEST(Rows, SkipPassesOverRows) {
  const Folder folder;
  Array x{{10, 2}, {}}, y{{10}, {}};
  std::string table = "a,b,y\n";
  for (int row = 0; row < 10; ++row) {
    const auto value = static_cast<float>(row);
    x.values.insert(x.values.end(), {value, -value});
    y.values.push_back(10 * value);
    table += concat(row, ",", -row, ",", 10 * row, "\n");
  }
  write_npy(folder.path("x.npy"), x);
  write_npy(folder.path("y.npy"), y);
  const std::string packed_x =
      folder.write("packed_x.npy", gzipped(read_file(folder.path("x.npy"))));
  const auto csv = open_rows(folder.write("t.csv", table), "y");
  const auto npy = open_rows(folder.path("x.npy"), folder.path("y.npy"));
  const auto packed_npy = open_rows(packed_x, folder.path("y.npy"));
  for (RowSource* source : {csv.get(), npy.get(), packed_npy.get()}) {
    Rows rows;
    source->skip(3);
    ASSERT_TRUE(source->next(2, rows));
    EXPECT_EQ(rows.first_row, 3u);
    EXPECT_THAT(rows.x.values, ElementsAre(3, -3, 4, -4));
    EXPECT_THAT(rows.y.values, ElementsAre(30, 40));
    source->skip(4);
    ASSERT_TRUE(source->next(5, rows));
    EXPECT_EQ(rows.first_row, 9u);
    EXPECT_THAT(rows.y.values, ElementsAre(90));
    source->skip(5);
    EXPECT_FALSE(source->next(1, rows));
    source->rewind();
    source->skip(20);
    EXPECT_FALSE(source->next(1, rows));
    source->rewind();
    EXPECT_EQ(read_all(*source).x.values, x.values);
  }
}

}  // namespace
}  // namespace fcp
