#include "fcp/data/words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fcp {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Words, AreRunsOfLettersAndDigits) {
  EXPECT_THAT(distinct_words("A fine, FINE flat (2nd floor)"),
              ElementsAre("2nd", "a", "fine", "flat", "floor"));
  EXPECT_THAT(distinct_words("Stra\u00dfe \u00c9t\u00e9/\u00e9t\u00e9"),
              ElementsAre("stra\u00dfe", "\u00c9t\u00e9", "\u00e9t\u00e9"))
      << "beyond ASCII nothing changes";
  EXPECT_THAT(distinct_words(" .,;- "), IsEmpty());
  EXPECT_THAT(distinct_words(""), IsEmpty());
}

}  // namespace
}  // namespace fcp
