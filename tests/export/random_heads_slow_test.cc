// random_heads_test.cc at length.
#include <gtest/gtest.h>

#include "tests/export/random_heads.h"

namespace fcp {
namespace {

TEST(RandomHeadsSlow, AreSoundGrowObeyTheLawAndExport) {
  const HeadCounts counts = check_random_heads(1000, 2000);
  EXPECT_GT(counts.bounded, 1800);
  EXPECT_GT(counts.law, 40000);
}

}  // namespace
}  // namespace fcp
