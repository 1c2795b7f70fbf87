#include "fcp/conformal/cross_guarantee.h"

#include <cmath>

#include <gtest/gtest.h>

namespace fcp {
namespace {

TEST(CrossGuarantee, OfJackknifePlusIsOneLessTwiceAlpha) {
  EXPECT_DOUBLE_EQ(cross_guarantee(Level(0.1), 40, 40), 0.8);
  EXPECT_DOUBLE_EQ(cross_guarantee(Level(0.25), 1000, 1000), 0.5);
}

TEST(CrossGuarantee, TakesTheBetterOfTwoBounds) {
  // Ten folds of 5: (1 − 10/50) / 11. Two folds of 500: 2 · 0.5 / 501.
  EXPECT_DOUBLE_EQ(cross_guarantee(Level(0.1), 50, 10), 0.8 - 0.8 / 11);
  EXPECT_DOUBLE_EQ(cross_guarantee(Level(0.1), 1000, 2), 0.8 - 1.0 / 501);
}

// The simpler form of the theorem, for every number of folds.
TEST(CrossGuarantee, IsNeverBelowTheSimpleForm) {
  for (const size_t rows : {20, 60, 300, 900}) {
    for (size_t folds = 2; folds <= rows; ++folds) {
      if (rows % folds != 0) continue;
      EXPECT_GE(cross_guarantee(Level(0.1), rows, folds),
                0.8 - std::sqrt(2 / static_cast<double>(rows)))
          << rows << " rows, " << folds << " folds";
    }
  }
}

TEST(CrossGuarantee, IsNotNegative) { EXPECT_EQ(cross_guarantee(Level(0.5), 20, 10), 0); }

}  // namespace
}  // namespace fcp
