#include "fcp/data/row_sources.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/data/npy.h"

#include "tests/support/files.h"

namespace fcp {
namespace {

constexpr size_t kSome = 100;

// Row i is {i, -i}, and its target 10 i; NaN in row `bad`.
std::unique_ptr<PrefetchedRows> numbered_rows(const Folder& folder, size_t large,
                                              size_t bad = kSome) {
  Array x = zeros({kSome, 2}), y = zeros({kSome});
  for (size_t i = 0; i < kSome; ++i) {
    x.values[2 * i] = i == bad ? std::nanf("") : static_cast<float>(i);
    x.values[2 * i + 1] = -static_cast<float>(i);
    y.values[i] = 10 * static_cast<float>(i);
  }
  write_npy(folder.path("x.npy"), x);
  write_npy(folder.path("y.npy"), y);
  return std::make_unique<PrefetchedRows>(open_rows(folder.path("x.npy"), folder.path("y.npy")),
                                          large);
}

void expect_batch(RowSource& rows, size_t count, size_t first, size_t expected) {
  Rows batch;
  ASSERT_TRUE(rows.next(count, batch));
  EXPECT_EQ(batch.first_row, first);
  ASSERT_EQ(batch.x.rows(), expected);
  ASSERT_EQ(batch.y.rows(), expected);
  for (size_t i = 0; i < expected; ++i) {
    EXPECT_EQ(batch.x.values[2 * i], static_cast<float>(first + i));
    EXPECT_EQ(batch.y.values[i], 10 * static_cast<float>(first + i));
  }
}

TEST(PrefetchedRows, GivesEveryBatchInItsPlace) {
  const Folder folder;
  const auto rows = numbered_rows(folder, 1);
  for (int pass = 0; pass < 2; ++pass) {
    for (size_t first = 0; first < kSome; first += 30) {
      expect_batch(*rows, 30, first, std::min<size_t>(30, kSome - first));
      EXPECT_EQ(rows->prefetching(), first + 30 < kSome);
    }
    Rows none;
    EXPECT_FALSE(rows->next(30, none));
    EXPECT_EQ(none.x.rows(), 0u);
    rows->rewind();
  }
}

TEST(PrefetchedRows, FollowsWhoeverSkipsRewindsOrAsksForOtherSizes) {
  const Folder folder;
  const auto rows = numbered_rows(folder, 1);
  expect_batch(*rows, 10, 0, 10);
  expect_batch(*rows, 7, 10, 7);  // ten were prefetched
  expect_batch(*rows, 7, 17, 7);
  rows->rewind();  // while seven are prefetched
  expect_batch(*rows, 7, 0, 7);
  EXPECT_EQ(rows->skip(20), 20u);
  expect_batch(*rows, 7, 27, 7);
  EXPECT_FALSE(rows->prefetching());  // it will be skipped again
  EXPECT_EQ(rows->skip(90), 66u);
  Rows none;
  EXPECT_FALSE(rows->next(7, none));
}

TEST(PrefetchedRows, ReadsSmallBatchesWhenTheyAreAskedFor) {
  const Folder folder;
  const auto rows = numbered_rows(folder, 21);
  expect_batch(*rows, 10, 0, 10);
  EXPECT_FALSE(rows->prefetching());
  expect_batch(*rows, 11, 10, 11);
  EXPECT_TRUE(rows->prefetching());
}

TEST(PrefetchedRows, ThrowsWhatIsWrongWithABatchWhenItIsAskedFor) {
  const Folder folder;
  const auto rows = numbered_rows(folder, 1, /*bad=*/25);
  expect_batch(*rows, 10, 0, 10);
  expect_batch(*rows, 10, 10, 10);
  Rows batch;
  EXPECT_THAT([&] { rows->next(10, batch); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("row 25, element 0")));
  rows->rewind();
  expect_batch(*rows, 25, 0, 25);
}

}  // namespace
}  // namespace fcp
