#include "fcp/data/column_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fcp {
namespace {

TEST(ColumnFacts, FarIsAQuarterOfTheRangeBeyondIt) {
  ColumnFacts facts{.low = 10, .high = 20};
  EXPECT_FALSE(facts.is_far(7.5));
  EXPECT_TRUE(facts.is_far(7.4));
  EXPECT_FALSE(facts.is_far(22.5));
  EXPECT_TRUE(facts.is_far(22.6));
  facts.low = facts.high = 3;
  EXPECT_FALSE(facts.is_far(3));
  EXPECT_TRUE(facts.is_far(4)) << "training rows had one value";
  EXPECT_FALSE(ColumnFacts{}.is_far(1e300)) << "nothing is known";
}

TEST(ColumnFacts, RareIsNotUnseen) {
  const ColumnFacts facts{.rare = {category_hash("gray")}};
  EXPECT_TRUE(facts.has_rare("gray"));
  EXPECT_FALSE(facts.has_rare("pink"));
  EXPECT_TRUE(ColumnFacts{.more = true}.has_rare("pink")) << "too many to tell";
}

TEST(ColumnFacts, RowsAreCountedOnce) {
  NoveltyCounts counts, more;
  EXPECT_TRUE(counts.none());
  std::string flags;
  add_flag(novelty_flag(Novelty::kMissing, "carat"), flags);
  add_flag(novelty_flag(Novelty::kRange, "x"), flags);
  EXPECT_EQ(flags, "missing:carat|range:x");
  counts.add(flags);
  counts.add("");
  more.add("missing:carat");
  more.add("unseen:cut");
  counts.add(more);
  EXPECT_EQ(
      counts.text(50),
      "3 of 50 rows have what no training row had (missing: carat in 2; unseen: cut in 1; far "
      "outside the training range: x in 1): the coverage guarantee does not extend to them");
}

}  // namespace
}  // namespace fcp
