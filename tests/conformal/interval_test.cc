#include "fcp/interval.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/reference/conformal_reference.h"

namespace fcp {
namespace {

using reference::kInfinity;

TEST(Interval, ContainsItsEnds) {
  const Interval interval{-1, 2};
  EXPECT_TRUE(interval.contains(-1));
  EXPECT_TRUE(interval.contains(2));
  EXPECT_FALSE(interval.contains(std::nextafter(2.0, 3.0)));
  EXPECT_FALSE(interval.contains(std::nan("")));
  EXPECT_EQ(interval.length(), 3);
}

TEST(Interval, MayBeInfiniteOrEmpty) {
  EXPECT_TRUE(Interval{}.contains(1e308));
  EXPECT_EQ(Interval{}.length(), kInfinity);
  EXPECT_EQ((Interval{0, kInfinity}.length()), kInfinity);
  EXPECT_EQ((Interval{kInfinity, kInfinity}.length()), 0);
  const Interval empty{2, 1};
  EXPECT_TRUE(empty.empty());
  EXPECT_EQ(empty.length(), 0);
  EXPECT_FALSE(empty.contains(1.5));
  EXPECT_FALSE((Interval{1, 1}.empty()));
  EXPECT_TRUE((Interval{kInfinity, -kInfinity}.empty()));
}

}  // namespace
}  // namespace fcp
