// The law of nested and feature_cqr for bounds whose bands are not nested by themselves, over many
// more heads than law_test.cc has time for.
#include <gtest/gtest.h>

#include "tests/methods/scores/heads.h"

namespace fcp {
namespace {

TEST(LawSlow, NestedByCrownIbp) {
  EXPECT_GT(expect_nested_law(BoundMethod::kCrownIbp, 60, 4, 102), 10000);
}

TEST(LawSlow, NestedByCrown) {
  EXPECT_GT(expect_nested_law(BoundMethod::kCrown, 60, 4, 103), 10000);
}

TEST(LawSlow, NestedByAlphaCrown) {
  EXPECT_GT(expect_nested_law(BoundMethod::kAlphaCrown, 12, 2, 104), 1500);
}

TEST(LawSlow, FeatureCqrByIbp) {
  EXPECT_GT(expect_feature_cqr_law(BoundMethod::kIbp, 400, 12, 105), 100000);
}

TEST(LawSlow, FeatureCqrByCrownIbp) {
  EXPECT_GT(expect_feature_cqr_law(BoundMethod::kCrownIbp, 12, 4, 106), 1500);
}

TEST(LawSlow, FeatureCqrByCrown) {
  EXPECT_GT(expect_feature_cqr_law(BoundMethod::kCrown, 12, 4, 107), 1500);
}

TEST(LawSlow, FeatureCqrByAlphaCrown) {
  EXPECT_GT(expect_feature_cqr_law(BoundMethod::kAlphaCrown, 3, 2, 108), 200);
}

}  // namespace
}  // namespace fcp
