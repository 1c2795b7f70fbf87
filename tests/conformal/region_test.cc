#include "fcp/conformal/region.h"

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

TEST(Box, ContainsAPointIfEveryOutputIsInside) {
  const Box box{{{0, 1}, {-kInfinity, 5}}};
  EXPECT_EQ(box.outputs(), 2u);
  EXPECT_TRUE(box.contains(std::vector<double>{1, -1e300}));
  EXPECT_FALSE(box.contains(std::vector<double>{1, 6}));
  EXPECT_FALSE(box.contains(std::vector<double>{2, 0}));
  EXPECT_THROW(box.contains(std::vector<double>{1}), Error);
  EXPECT_FALSE(box.empty());
  EXPECT_TRUE((Box{{{0, 1}, {1, 0}}}.empty()));
}

TEST(LabelSet, HoldsLabels) {
  LabelSet set(4);
  EXPECT_TRUE(set.empty());
  set.insert(2);
  set.insert(2);
  set.insert(0);
  EXPECT_EQ(set.size(), 2u);
  EXPECT_EQ(set.classes(), 4u);
  EXPECT_TRUE(set.contains(2));
  EXPECT_FALSE(set.contains(1));
  EXPECT_FALSE(set.contains(9));
  EXPECT_THROW(set.insert(4), Error);
  EXPECT_EQ(set, LabelSet(std::vector<bool>{true, false, true, false}));
}

TEST(Region, IsABoxOrALabelSet) {
  Region region = Box{{{0, 1}}};
  EXPECT_TRUE(std::holds_alternative<Box>(region));
  region = LabelSet(3);
  EXPECT_TRUE(std::get<LabelSet>(region).empty());
}

}  // namespace
}  // namespace fcp
