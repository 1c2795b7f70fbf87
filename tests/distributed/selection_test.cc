#include "fcp/distributed/selection.h"

#include <cmath>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/special_numbers.h"
#include "fcp/conformal/quantile.h"

#include "tests/distributed/spread_scores.h"
#include "tests/support/thread_ranks.h"

namespace fcp {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// Equal bits, so that -0.0 is not taken for 0.0.
bool same_bits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

TEST(OrderedKey, KeepsTheOrderAndComesBack) {
  const double lowest = std::numeric_limits<double>::lowest();
  const double tiny = std::numeric_limits<double>::denorm_min();
  const std::vector<double> ascending = {-kInfinity, lowest, -1.5, -1,      -tiny,    0.0,
                                         tiny,       1e-3,   1.0,  -lowest, kInfinity};
  for (size_t i = 0; i < ascending.size(); ++i) {
    EXPECT_TRUE(same_bits(from_ordered_key(ordered_key(ascending[i])), ascending[i]));
    if (i > 0) {
      EXPECT_LT(ordered_key(ascending[i - 1]), ordered_key(ascending[i]));
    }
  }
  EXPECT_EQ(ordered_key(-0.0), ordered_key(0.0));
}

TEST(Refinement, NarrowsByHand) {
  // Keys 100 … 107 in two rounds: 2 bits, then 1. The third of 100 101 101 106 is 101; the fourth
  // is 106.
  const uint64_t ks[] = {4, 3};
  Refinement refinement(100, 107, ks, 2);
  std::vector<uint64_t> keys = {106, 101, 100, 101};
  std::vector<uint64_t> counts(4);
  EXPECT_EQ(refinement.width(), 3);
  refinement.count(keys, counts);
  EXPECT_THAT(counts, ElementsAre(3, 0, 0, 1));  // 100 101 | 102 103 | 104 105 | 106 107
  refinement.narrow(counts);
  EXPECT_THAT(refinement.starts(), ElementsAre(100, 106));
  EXPECT_EQ(refinement.buckets(), 2u);
  counts.assign(4, 0);
  refinement.count(keys, counts);
  EXPECT_THAT(counts, ElementsAre(1, 2, 1, 0));
  refinement.narrow(counts);
  EXPECT_TRUE(refinement.done());
  EXPECT_THAT(refinement.found(), ElementsAre(106, 101));
}

TEST(Refinement, DropsWhatCannotBeTheAnswer) {
  const uint64_t ks[] = {1};
  Refinement refinement(0, 15, ks, 2);
  std::vector<uint64_t> keys = {9, 1, 3, 15};
  std::vector<uint64_t> counts(4);
  refinement.count(keys, counts);
  EXPECT_EQ(keys.size(), 4u);
  refinement.narrow(counts);
  counts.assign(4, 0);
  refinement.count(keys, counts);
  EXPECT_THAT(keys, ElementsAre(1, 3));
}

TEST(Selection, EqualsNthElementForAnyNumberOfRanks) {
  Random random(1);
  for (int repeat = 0; repeat < 400; ++repeat) {
    const int size = 1 + static_cast<int>(random.below(9));
    const SpreadScores spread = spread_scores(random, size, 40);
    std::vector<uint64_t> ks(random.below(6));
    for (uint64_t& k : ks) k = 1 + random.below(spread.all.size());
    const int bits = 1 + static_cast<int>(random.below(16));
    run_threads(size, [&](Communicator& ranks) {
      const auto& mine = spread.by_rank[static_cast<size_t>(ranks.rank())];
      const std::vector<double> found = distributed_select(ranks, keys_of(mine), ks, bits);
      ASSERT_EQ(found.size(), ks.size());
      for (size_t i = 0; i < ks.size(); ++i) {
        ASSERT_TRUE(same_bits(found[i], kth_smallest(spread.all, ks[i]))) << "rank " << ks[i];
      }
    });
  }
}

TEST(Selection, NoScoresAtAll) {
  run_threads(3, [](Communicator& ranks) {
    EXPECT_THAT(distributed_select(ranks, {}, {}), ElementsAre());
    const uint64_t one = 1;
    EXPECT_THROW(distributed_select(ranks, {}, std::span(&one, 1)), Error);
  });
}

TEST(Selection, SerialCommunicatorNeedsNoThreads) {
  const auto ranks = make_serial_communicator();
  const std::vector<double> scores = {3, -kInfinity, 2, 2};
  const uint64_t ks[] = {1, 2, 3, 4};
  EXPECT_THAT(distributed_select(*ranks, keys_of(scores), ks), ElementsAre(-kInfinity, 2, 2, 3));
}

TEST(Selection, RefusesAKThatDoesNotExist) {
  const auto ranks = make_serial_communicator();
  const std::vector<double> scores = {1, 2};
  for (const uint64_t k : {uint64_t{0}, uint64_t{3}}) {
    EXPECT_THAT([&] { distributed_select(*ranks, keys_of(scores), std::span(&k, 1)); },
                ThrowsMessage<Error>(HasSubstr("-th smallest of 2 scores")));
  }
  const uint64_t one = 1;
  EXPECT_THROW(distributed_select(*ranks, keys_of(scores), std::span(&one, 1), 17), Error);
}

// The cost that docs/scale.md promises: at most 8 collectives and 84 KiB for one k, however the
// numbers lie, and nothing from rank to rank.
TEST(Selection, TrafficStaysWithinTheBound) {
  Random random(3);
  for (int repeat = 0; repeat < 100; ++repeat) {
    const SpreadScores spread = spread_scores(random, 4, 200);
    const uint64_t ks[] = {1 + random.below(spread.all.size())};
    const Traffic traffic = run_threads(4, [&](Communicator& ranks) {
      distributed_select(ranks, keys_of(spread.by_rank[static_cast<size_t>(ranks.rank())]), ks);
    });
    ASSERT_LE(traffic.collectives, 8u);
    ASSERT_LE(traffic.largest_collective, 8u << 11);
    ASSERT_LE(traffic.collective_bytes, 24 + (84u << 10));
    ASSERT_EQ(traffic.messages, 0u);
  }
}

TEST(Selection, ManyRanksAndLevelsShareTheRounds) {
  constexpr int kRanks = 200;
  const uint64_t ks[] = {8000, 9000, 9500, 9900};
  std::vector<double> all;
  std::vector<std::vector<double>> by_rank(kRanks);
  Random random(4);
  for (auto& scores : by_rank) {
    for (int i = 0; i < 50; ++i) scores.push_back(std::abs(random.normal()));
    all.insert(all.end(), scores.begin(), scores.end());
  }
  std::mutex mutex;
  std::vector<std::vector<double>> answers;
  const Traffic traffic = run_threads(kRanks, [&](Communicator& ranks) {
    auto found = distributed_select(ranks, keys_of(by_rank[static_cast<size_t>(ranks.rank())]), ks);
    const std::lock_guard lock(mutex);
    answers.push_back(std::move(found));
  });
  EXPECT_LE(traffic.collectives, 8u);
  EXPECT_LE(traffic.collective_bytes, 24 + ((16u + 4 * 68) << 10));
  for (const auto& found : answers) {
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i], kth_smallest(all, ks[i]));
    }
  }
}

}  // namespace
}  // namespace fcp
