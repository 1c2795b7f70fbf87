// The law of nested for bounds whose bands are not nested by themselves, over many more heads than
// law_test.cc has time for.
#include <gtest/gtest.h>

#include "tests/scores/heads.h"

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

}  // namespace
}  // namespace fcp
