#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/data/npy.h"
#include "fcp/data/row_sources.h"

#include "tests/support/files.h"
#include "tests/support/zip.h"

namespace fcp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// The bytes of an .npy of int64 numbers.
std::string npy_of_integers(const std::string& shape, const std::vector<int64_t>& numbers) {
  std::string header = "{'descr': '<i8', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize(118, ' ');
  std::string bytes = std::string("\x93NUMPY\x01\x00", 8) + little(118, 2) + header;
  for (const int64_t number : numbers) bytes += little(static_cast<uint64_t>(number), 8);
  return bytes;
}

constexpr int64_t kLarge = (int64_t{1} << 24) + 1;  // which float32 does not hold

class ArchiveRows : public ::testing::Test {
 protected:
  std::string write(int64_t rows_of_mask = 3) {
    const std::string mask = rows_of_mask == 3 ? "(3,)" : "(2,)";
    std::vector<int64_t> masks(static_cast<size_t>(rows_of_mask), 1);
    return folder_.write("rows.npz",
                         zip({{"ids.npy", npy_of_integers("(3, 2)", {1, 2, kLarge, 4, 5, 6})},
                              {"in:0.npy", npy_of_integers(mask, masks)},
                              {"y.npy", npy_of_integers("(3,)", {7, 8, 9})}},
                             {}));
  }
  Folder folder_;
};

TEST_F(ArchiveRows, HaveTheEntriesSideBySide) {
  const std::string path = write();
  EXPECT_THAT(archive_row_shapes(path, {"ids", "in:0"}),
              ElementsAre(std::vector<int64_t>{2}, std::vector<int64_t>{}));
  const auto source = open_archive(path, {"ids", "in:0"}, "y", {.exact = true});
  EXPECT_EQ(source->size(), 3u);
  EXPECT_THAT(source->row_shape(), ElementsAre(3));
  EXPECT_EQ(source->target_count(), 1u);
  Rows rows;
  ASSERT_TRUE(source->next(2, rows));
  EXPECT_THAT(rows.x.exact, ElementsAre(1, 2, 1, kLarge, 4, 1));
  EXPECT_THAT(rows.x.values, ElementsAre(1, 2, 1, static_cast<float>(kLarge), 4, 1));
  EXPECT_THAT(rows.y.values, ElementsAre(7, 8));
  ASSERT_TRUE(source->next(2, rows));
  EXPECT_EQ(rows.first_row, 2u);
  EXPECT_THAT(rows.x.exact, ElementsAre(5, 6, 1));
  EXPECT_FALSE(source->next(2, rows));
  source->rewind();
  EXPECT_EQ(source->skip(2), 2u);
  ASSERT_TRUE(source->next(9, rows));
  EXPECT_THAT(rows.x.shape, ElementsAre(1, 3));
  // Without being asked for, doubles are not kept.
  Rows plain;
  open_archive(path, {"in:0", "ids"}, "")->next(1, plain);
  EXPECT_TRUE(plain.x.exact.empty());
  EXPECT_THAT(plain.x.values, ElementsAre(1, 1, 2));
}

TEST_F(ArchiveRows, EntriesThatDoNotFitAreNamed) {
  const std::string path = write(2);
  EXPECT_THAT(
      [&] {
        open_archive(path, {"ids", "in:0"}, "y");
      },
      ThrowsMessage<Error>(HasSubstr("rows.npz:in:0: found 2 rows, expected 3 as in ids")));
  EXPECT_THAT(
      [&] {
        open_archive(path, {"ids", "mask"}, "y");
      },
      ThrowsMessage<Error>(HasSubstr("no entry 'mask'; the entries are ids, in:0, y")));
}

}  // namespace
}  // namespace fcp
