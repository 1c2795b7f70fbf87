#include "fcp/data/array.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/files.h"

namespace fcp {
namespace {

using testing::ElementsAre;

TEST(Array, HasRowsAndTheirSize) {
  const Array array{{2, 3, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}};
  EXPECT_EQ(array.rows(), 2u);
  EXPECT_EQ(array.row_size(), 6u);
  EXPECT_THAT(array.row(1), ElementsAre(6, 7, 8, 9, 10, 11));
  EXPECT_EQ(Array{}.rows(), 0u);
  EXPECT_EQ(shape_text(array.shape), "[2, 3, 2]");
}

TEST(Array, CountsElements) {
  EXPECT_EQ(element_count(std::vector<int64_t>{}), 1u);
  EXPECT_EQ(element_count(std::vector<int64_t>{3, 4}), 12u);
  EXPECT_EQ(element_count(std::vector<int64_t>{INT64_MAX, 0, INT64_MAX}), 0u);
}

TEST(Array, RefusesShapesThatCannotBe) {
  const Folder folder;
  const auto count = [&](std::vector<int64_t> shape) {
    return message_of(folder, [&] { element_count(shape); });
  };
  EXPECT_EQ(count({2, -1}), "shape [2, -1] has a negative size");
  EXPECT_EQ(count({4294967296, 4294967296}),
            "shape [4294967296, 4294967296] has too many elements for this machine");
}

TEST(Array, TakesRowsInOrderAndTwice) {
  const Array array{{3, 2}, {0, 1, 10, 11, 20, 21}};
  const Array taken = take_rows(array, std::vector<size_t>{2, 0, 2});
  EXPECT_THAT(taken.shape, ElementsAre(3, 2));
  EXPECT_THAT(taken.values, ElementsAre(20, 21, 0, 1, 20, 21));
  EXPECT_THROW(take_rows(array, std::vector<size_t>{3}), Error);
}

}  // namespace
}  // namespace fcp
