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

}  // namespace
}  // namespace fcp
