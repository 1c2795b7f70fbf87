#include "fcp/distributed/merge.h"

#include <bit>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

#include "tests/distributed/spread_scores.h"
#include "tests/support/thread_ranks.h"

namespace fcp {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// So that −0.0 is not taken for 0.0.
uint64_t bits_of(double x) { return std::bit_cast<uint64_t>(x); }

TEST(Merge, EqualsSortingForAnyNumberOfRanksAndAnyChunk) {
  Random random(1);
  for (int repeat = 0; repeat < 300; ++repeat) {
    const int size = 1 + static_cast<int>(random.below(8));
    const SpreadScores spread = spread_scores(random, size, 60);
    std::vector<double> expected = spread.all;
    for (double& score : expected) score = score == 0 ? 0.0 : score;
    std::sort(expected.begin(), expected.end());
    MergeOptions options;
    options.buffer = random.below(3000);
    run_threads(size, [&](Communicator& ranks) {
      const auto& mine = spread.by_rank[static_cast<size_t>(ranks.rank())];
      const std::vector<double> found = gather_sorted(ranks, mine, options);
      ASSERT_EQ(found.size(), ranks.rank() == 0 ? expected.size() : 0);
      for (size_t i = 0; i < found.size(); ++i) ASSERT_EQ(bits_of(found[i]), bits_of(expected[i]));
    });
  }
}

TEST(Merge, RunsAreConsecutiveAndBounded) {
  std::vector<double> seen;
  size_t runs = 0;
  run_threads(2, [&](Communicator& ranks) {
    std::vector<double> scores(20000);
    for (size_t i = 0; i < scores.size(); ++i) {
      scores[i] = -2.0 * static_cast<double>(i) - ranks.rank();
    }
    merge_sorted(ranks, scores, [&](std::span<const double> run) {
      ASSERT_EQ(ranks.rank(), 0);
      ++runs;
      seen.insert(seen.end(), run.begin(), run.end());
    });
  });
  ASSERT_EQ(seen.size(), 40000u);
  for (size_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], static_cast<double>(i) - 39999);
  EXPECT_EQ(runs, 5u);  // 40000 / 8192
}

// 8 bytes for each score of the other ranks, in chunks of buffer / ranks, and one empty message
// each.
TEST(Merge, SendsEachScoreOnce) {
  MergeOptions options;
  options.buffer = 4 * 8 * 100;
  const Traffic traffic = run_threads(4, [&](Communicator& ranks) {
    gather_sorted(ranks, std::vector<double>(1000, 1.0), options);
  });
  EXPECT_EQ(traffic.message_bytes, 3 * 8000u);
  EXPECT_EQ(traffic.messages, 3 * 11u);
}

TEST(Merge, NamesRankAndRowOfANaN) {
  const auto merge = [] {
    run_threads(3, [](Communicator& ranks) {
      std::vector<double> scores(5, 1.0);
      if (ranks.rank() == 1) scores[4] = std::nan("");
      MergeOptions options;
      options.first_row = 5 * static_cast<size_t>(ranks.rank());
      gather_sorted(ranks, scores, options);
    });
  };
  EXPECT_THAT(merge, ThrowsMessage<Error>(HasSubstr("score of row 9 on rank 1 is NaN")));
}

}  // namespace
}  // namespace fcp
