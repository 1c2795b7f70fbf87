#include "fcp/evaluate/conditional_sample.h"

#include <gtest/gtest.h>

#include "fcp/base/random.h"

namespace fcp {
namespace {

// 400 groups of 20 rows, each covered with the probability that `rate` draws for its group.
template <typename Rate>
GroupCounts drawn_groups(Random& random, const Rate& rate) {
  GroupCounts counts;
  for (int64_t group = 0; group < 400; ++group) {
    const double own = rate();
    for (int row = 0; row < 20; ++row) counts.add(group, random.uniform() < own);
  }
  return counts;
}

// Of independent rows it is 1 up to chance: its estimate has a deviation of √(2/400) = 0.07, so
// that 1.5 is exceeded with a probability below 1e-9. Of groups that are covered whole or not at
// all it is their size.
TEST(DesignEffect, SaysHowManyRowsTellAsMuchAsOne) {
  Random random(1);
  const double independent = design_effect(drawn_groups(random, [] { return 0.9; }));
  EXPECT_GE(independent, 1);
  EXPECT_LT(independent, 1.5);
  const auto all_or_none = [&] { return random.uniform() < 0.9 ? 1.0 : 0.0; };
  EXPECT_NEAR(design_effect(drawn_groups(random, all_or_none)), 20, 0.1);
  EXPECT_DOUBLE_EQ(design_effect(drawn_groups(random, [] { return 1.1; })), 20)
      << "all covered: they could be alike";
}

// Against its definition, on groups of different sizes.
TEST(DesignEffect, IsTheRatioOfTheVariances) {
  GroupCounts counts;
  counts.groups = {{0, {4, 4}}, {1, {0, 2}}, {2, {5, 6}}};
  const double rate = 9.0 / 12;
  const double spread = (4 - 3) * (4 - 3) + (0 - 1.5) * (0 - 1.5) + (5 - 4.5) * (5 - 4.5);
  EXPECT_DOUBLE_EQ(design_effect(counts), 1.5 * spread / (12 * rate * (1 - rate)));
}

}  // namespace
}  // namespace fcp
