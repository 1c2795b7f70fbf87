// Compositions of all operators with bounds; thousands more in random_heads_slow_test.cc.
#include "tests/export/random_heads.h"

#include <gtest/gtest.h>

namespace fcp {
namespace {

TEST(RandomHeads, AreSoundGrowObeyTheLawAndExport) {
  const HeadCounts counts = check_random_heads(1, 60);
  EXPECT_GT(counts.bounded, 54);
  EXPECT_GT(counts.linear, 30);
  EXPECT_GT(counts.exported, 18);
  EXPECT_GT(counts.law, 1500);
}

// Products overflow between the ball and a softmax or a normalisation, whose ranges are then whole.
TEST(RandomHeads, NumbersThatOverflowOnTheWay) {
  check_random_heads(1073, 1);
  check_random_heads(1432, 1);
}

}  // namespace
}  // namespace fcp
