// A limit of memory changes no range, and one that is too low is said. That walks keep to it is
// tested by memory_slow_test.cc.
#include "fcp/base/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"

#include "tests/bounds/heads.h"

namespace fcp {
namespace {

constexpr size_t kMegabyte = size_t{1} << 20;

Range ranges_within(const std::shared_ptr<const Network>& head, const Ball& ball,
                    BoundMethod method, bool outward, size_t memory) {
  BoundOptions options;
  options.method = method;
  options.outward = outward;
  options.iterations = 3;
  options.memory = memory;
  return make_bounds(head, options)->ranges(ball)[0];
}

// 19 × 64 × 128 outputs, five rows: a budget changes the pieces and nothing else.
TEST(Memory, BudgetsChangeNothing) {
  torch::manual_seed(31);
  const auto head = head_of(make_dense_head(6, 8, 19, 8, 16));
  const Ball ball = {torch::randn({5, 6, 8, 16}), torch::rand({5}) * 0.3, Norm::kInf, {}};
  for (const bool outward : {false, true}) {
    const Range whole = ranges_within(head, ball, BoundMethod::kIbp, outward, 0);
    ASSERT_EQ(whole.lower.sizes(), (std::vector<int64_t>{5, 19, 64, 128}));
    const Range parts = ranges_within(head, ball, BoundMethod::kIbp, outward, 40 * kMegabyte);
    EXPECT_TRUE(torch::equal(parts.lower, whole.lower));
    EXPECT_TRUE(torch::equal(parts.upper, whole.upper));
    for (int i = 0; i < 50 && outward; ++i) {
      EXPECT_TRUE(contains(parts, head->forward(sample_ball(ball, i % 2))));
    }
  }
}

// Products of other sizes may sum in another order.
TEST(Memory, BudgetsChangeNothingOnTheWayBack) {
  torch::manual_seed(32);
  const auto head = head_of(make_dense_head(3, 4, 2, 3, 4));
  const Ball ball = {torch::randn({2, 3, 3, 4}), torch::tensor({0.05f, 0.3f}), Norm::kTwo, {}};
  for (const BoundMethod method : kAllMethods) {
    const Range whole = ranges_within(head, ball, method, true, 0);
    const Range parts = ranges_within(head, ball, method, true, 2 * kMegabyte);
    EXPECT_TRUE(torch::allclose(parts.lower, whole.lower, 1e-6, 1e-6)) << bound_name(method);
    EXPECT_TRUE(torch::allclose(parts.upper, whole.upper, 1e-6, 1e-6)) << bound_name(method);
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(contains(parts, head->forward(sample_ball(ball, i % 2)))) << bound_name(method);
    }
  }
}

// A part of the memory changes the pieces; a row that does not fit its part gets all there is.
TEST(Memory, SharesOfItChangeNothing) {
  torch::manual_seed(33);
  const auto head = head_of(make_dense_head(6, 8, 19, 8, 16));
  const Ball ball = {torch::randn({5, 6, 8, 16}), torch::rand({5}) * 0.3, Norm::kInf, {}};
  const Range whole = ranges_within(head, ball, BoundMethod::kIbp, true, 40 * kMegabyte);
  for (const size_t sharers : {2, 1000}) {
    const MemoryShare share(sharers);
    EXPECT_EQ(memory_sharers(), sharers);
    const Range part = ranges_within(head, ball, BoundMethod::kIbp, true, 40 * kMegabyte);
    EXPECT_TRUE(torch::equal(part.lower, whole.lower)) << sharers;
    EXPECT_TRUE(torch::equal(part.upper, whole.upper)) << sharers;
  }
  EXPECT_EQ(memory_sharers(), 1u);
}

TEST(Memory, TooLittleIsSaidBeforeAnyWork) {
  torch::manual_seed(33);
  const auto head = head_of(make_dense_head(6, 8, 19, 8, 16));
  const Ball ball = {torch::randn({1, 6, 8, 16}), torch::ones({1}), Norm::kInf, {}};
  for (const BoundMethod method : kAllMethods) {
    try {
      ranges_within(head, ball, method, false, kMegabyte);
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("1.1 MB allowed"),
                                               testing::HasSubstr("more memory"),
                                               testing::HasSubstr("cut later")));
    }
  }
}

// One question for many radii is many questions.
TEST(Around, GivesTheRangesOfEachRadius) {
  torch::manual_seed(34);
  const auto head = head_of(make_dense_head(3, 4, 2, 3, 4));
  const torch::Tensor center = torch::randn({3, 3, 3, 4}), scale = torch::rand({3, 3, 4});
  for (const Norm norm : kAllNorms) {
    const auto bounds = make_bounds(head);
    const HeadBounds::RangesAt at = bounds->around({center, {}, norm, scale});
    for (const float radius : {0.0f, 0.1f, 2.0f}) {
      const torch::Tensor radii = torch::tensor({radius, 0.5f, radius / 2});
      const Range one = at(radii)[0], other = bounds->ranges({center, radii, norm, scale})[0];
      EXPECT_TRUE(torch::equal(one.lower, other.lower) && torch::equal(one.upper, other.upper));
    }
    EXPECT_THROW(at(torch::ones({2})), Error);
  }
}

}  // namespace
}  // namespace fcp
