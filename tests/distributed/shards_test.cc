#include "fcp/distributed/shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"

namespace fcp {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Shards, TenRowsOverFourRanks) {
  EXPECT_EQ(share_of(10, 0, 4), (RowRange{0, 3}));
  EXPECT_EQ(share_of(10, 1, 4), (RowRange{3, 6}));
  EXPECT_EQ(share_of(10, 2, 4), (RowRange{6, 8}));
  EXPECT_EQ(share_of(10, 3, 4), (RowRange{8, 10}));
}

TEST(Shards, RangesFollowEachOtherAndDifferByOneRowAtMost) {
  Random random(1);
  for (int repeat = 0; repeat < 2000; ++repeat) {
    const size_t rows = random.below(repeat % 2 == 0 ? 50 : 1'000'000'000'000);
    const int ranks = 1 + static_cast<int>(random.below(40));
    size_t next = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const RowRange range = share_of(rows, rank, ranks);
      ASSERT_EQ(range.begin, next);
      ASSERT_GE(range.size(), rows / static_cast<size_t>(ranks));
      ASSERT_LE(range.size(), rows / static_cast<size_t>(ranks) + 1);
      next = range.end;
    }
    ASSERT_EQ(next, rows);
  }
}

TEST(Shards, MoreRanksThanRows) {
  EXPECT_EQ(share_of(2, 1, 5).size(), 1u);
  EXPECT_EQ(share_of(2, 2, 5).size(), 0u);
  EXPECT_EQ(share_of(0, 0, 5), (RowRange{0, 0}));
}

TEST(Shards, RefusesRanksThatDoNotExist) {
  EXPECT_THROW(share_of(5, 2, 2), Error);
  EXPECT_THROW(share_of(5, -1, 2), Error);
  EXPECT_THROW(share_of(5, 0, 0), Error);
}

TEST(Shards, PiecesOfSeveralFiles) {
  const std::vector<size_t> files = {3, 0, 5, 2};  // rows 0–2, none, 3–7, 8–9
  EXPECT_THAT(pieces_of(files, 0, 2),
              ElementsAre(FilePiece{0, {0, 3}, 0}, FilePiece{2, {0, 2}, 3}));
  EXPECT_THAT(pieces_of(files, 1, 2),
              ElementsAre(FilePiece{2, {2, 5}, 5}, FilePiece{3, {0, 2}, 8}));
  EXPECT_THAT(pieces_of({}, 0, 2), IsEmpty());
  EXPECT_THAT(pieces_of(files, 11, 12), IsEmpty());
}

TEST(Shards, PiecesCoverEveryRowOfEveryFileOnce) {
  Random random(2);
  for (int repeat = 0; repeat < 500; ++repeat) {
    std::vector<size_t> files(random.below(8));
    std::vector<std::pair<size_t, size_t>> expected;  // file and row, in order
    for (size_t file = 0; file < files.size(); ++file) {
      files[file] = random.below(10);
      for (size_t row = 0; row < files[file]; ++row) expected.emplace_back(file, row);
    }
    const int ranks = 1 + static_cast<int>(random.below(12));
    std::vector<std::pair<size_t, size_t>> found;
    for (int rank = 0; rank < ranks; ++rank) {
      for (const FilePiece& piece : pieces_of(files, rank, ranks)) {
        ASSERT_EQ(piece.first_row, found.size());
        ASSERT_GT(piece.rows.size(), 0u);
        for (size_t row = piece.rows.begin; row < piece.rows.end; ++row) {
          found.emplace_back(piece.file, row);
        }
      }
    }
    ASSERT_EQ(found, expected);
  }
}

}  // namespace
}  // namespace fcp
