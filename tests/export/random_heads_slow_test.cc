// random_heads_test.cc at length.
#include <gtest/gtest.h>

#include "tests/export/random_heads.h"

namespace fcp {
namespace {

TEST(RandomHeadsSlow, AreSoundGrowObeyTheLawAndExport) {
  const HeadCounts counts = check_random_heads(1000, 5000);
  EXPECT_GT(counts.bounded, 4500);
  EXPECT_GT(counts.law, 100000);
}

}  // namespace
}  // namespace fcp
