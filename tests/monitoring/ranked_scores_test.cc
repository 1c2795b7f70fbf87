#include "fcp/monitoring/ranked_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"

namespace fcp {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();

// Against a plain list, with ties, infinities, and enough scores for blocks to split and to empty.
TEST(RankedScores, AreAPlainSortedList) {
  Random random(1);
  const auto draw = [&](uint64_t values) {
    const uint64_t kind = random.below(50);
    return kind == 0 ? kFar : kind == 1 ? -kFar : static_cast<double>(random.below(values));
  };
  for (const uint64_t values : {3u, 40u, 1000000u}) {
    std::vector<double> plain(random.below(3000));
    for (double& score : plain) score = draw(values);
    RankedScores ranked(plain);
    for (int step = 0; step < 6000; ++step) {
      if (!plain.empty() && random.below(100) < (step < 3000 ? 20 : 80)) {
        const size_t at = random.below(plain.size());
        ranked.erase(plain[at]);
        plain.erase(plain.begin() + static_cast<std::ptrdiff_t>(at));
      } else {
        plain.push_back(draw(values));
        ranked.insert(plain.back());
      }
      if (step % 97 != 0) continue;
      std::sort(plain.begin(), plain.end());
      const double at = draw(values);
      ASSERT_EQ(ranked.size(), plain.size());
      ASSERT_EQ(ranked.count_below(at),
                std::count_if(plain.begin(), plain.end(), [&](double s) { return s < at; }));
      ASSERT_EQ(ranked.count_at_most(at),
                std::count_if(plain.begin(), plain.end(), [&](double s) { return s <= at; }));
      if (plain.empty()) continue;
      const size_t k = random.below(plain.size());
      ASSERT_EQ(ranked.kth(k), plain[k]);
    }
  }
}

TEST(RankedScores, RefuseWhatIsNotThere) {
  RankedScores ranked({1, 2, 4});
  EXPECT_THROW(ranked.erase(3), Error);
  EXPECT_THROW(ranked.erase(5), Error);
  EXPECT_THROW(ranked.kth(3), Error);
  EXPECT_THROW(ranked.insert(std::nan("")), Error);
  EXPECT_THROW(RankedScores({1, std::nan("")}), Error);
}

// A bag of 5,000 whose scores only grow, each new one for an old one at random: blocks that have
// lost most of their scores are joined.
TEST(RankedScores, NeedNoMoreBlocksThanScoresWarrant) {
  Random random(2);
  RankedScores ranked;
  for (int step = 0; step < 100'000; ++step) {
    ranked.insert(step);
    if (ranked.size() > 5'000) ranked.erase(ranked.kth(random.below(ranked.size())));
    ASSERT_LE(ranked.blocks(), ranked.size() / 256 + 1);
  }
  const std::vector<double> sorted = ranked.sorted();
  EXPECT_EQ(sorted.size(), 5'000u);
  EXPECT_TRUE(std::is_sorted(sorted.begin(), sorted.end()));
  for (size_t i = 0; i < sorted.size(); i += 999) EXPECT_EQ(ranked.kth(i), sorted[i]);
}

}  // namespace
}  // namespace fcp
