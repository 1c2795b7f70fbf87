// RoiAlign and NonMaxSuppression against loops and literals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/nn/ops/op_testing.h"

namespace fcp {
namespace {

using testing::HasSubstr;

// On a plane 10 i + j a bilinear sample is the plane itself, so that a bin has the plane at its
// middle.
TEST(RoiAlign, IsExactOnAPlane) {
  const torch::Tensor i = torch::arange(12, torch::kDouble).view({12, 1});
  const torch::Tensor j = torch::arange(9, torch::kDouble);
  const torch::Tensor plane = i * 10 + j;
  const torch::Tensor x = torch::stack({plane, -plane}).unsqueeze(0).repeat({2, 1, 1, 1});
  x[1].mul_(2);
  const torch::Tensor boxes = torch::tensor({{2.0, 4.0, 10.0, 16.0}, {1.0, 3.0, 9.0, 9.0}});
  const torch::Tensor images = torch::tensor({1, 0}, torch::kLong);
  for (const int64_t ratio : {0, 2, 3}) {
    for (const char* mode : {"half_pixel", "output_half_pixel"}) {
      const Node made = node("RoiAlign", 3,
                             {{"output_height", int64_t{3}},
                              {"output_width", int64_t{2}},
                              {"sampling_ratio", ratio},
                              {"spatial_scale", 0.5f},
                              {"coordinate_transformation_mode", std::string(mode)}});
      const torch::Tensor y = run(made, {x, boxes.to(torch::kDouble), images}, 16);
      ASSERT_EQ(y.sizes(), torch::IntArrayRef({2, 2, 3, 2}));
      const double offset = mode[0] == 'h' ? 0.5 : 0;
      // The first box is 6 high and 4 wide, from (2, 1) on, in the second image.
      for (int64_t p = 0; p < 3; ++p) {
        for (int64_t q = 0; q < 2; ++q) {
          const double row = 2 - offset + 2 * static_cast<double>(p) + 1;
          const double column = 1 - offset + 2 * static_cast<double>(q) + 1;
          EXPECT_NEAR(y[0][0][p][q].item<double>(), 2 * (10 * row + column), 1e-9);
          EXPECT_NEAR(y[0][1][p][q].item<double>(), -2 * (10 * row + column), 1e-9);
        }
      }
    }
  }
  EXPECT_THAT(error_of(node("RoiAlign", 3), {x, boxes, images + 1}, 16), HasSubstr("index"));
  EXPECT_THAT(
      error_of(node("RoiAlign", 3, {{"sampling_ratio", int64_t{1} << 40}}), {x, boxes, images}, 16),
      HasSubstr("RoiAlign node 'it'"));
}

TEST(NonMaxSuppression, KeepsBoxesByScoreUnlessTheyOverlap) {
  const torch::Tensor boxes = torch::tensor({{{0.0f, 0.0f, 1.0f, 1.0f},
                                              {0.0f, 0.1f, 1.0f, 1.1f},
                                              {1.0f, 0.9f, 0.0f, -0.1f},  // corners the other way
                                              {0.0f, 10.0f, 1.0f, 11.0f},
                                              {0.0f, 10.1f, 1.0f, 11.1f},
                                              {0.0f, 100.0f, 1.0f, 101.0f}}});
  const torch::Tensor scores = torch::tensor(
      {{{0.9f, 0.75f, 0.6f, 0.95f, 0.5f, 0.3f}, {0.1f, 0.8f, 0.1f, 0.1f, 0.1f, 0.1f}}});
  const auto kept = [&](int64_t most, float overlap, float least) {
    return run(node("NonMaxSuppression", 5),
               {boxes, scores, torch::tensor(most, torch::kLong), torch::tensor(overlap),
                torch::tensor(least)},
               11);
  };
  EXPECT_TRUE(
      torch::equal(kept(3, 0.5f, 0.2f),
                   torch::tensor({{0, 0, 3}, {0, 0, 0}, {0, 0, 5}, {0, 1, 1}}, torch::kLong)));
  EXPECT_TRUE(torch::equal(kept(1, 0.5f, 0.85f), torch::tensor({{0, 0, 3}}, torch::kLong)));
  EXPECT_EQ(kept(2, 0.5f, 2.0f).sizes(), torch::IntArrayRef({0, 3}));
  EXPECT_EQ(kept(0, 0.5f, 0.0f).sizes(), torch::IntArrayRef({0, 3}));
  const torch::Tensor centred =
      torch::tensor({{{0.5f, 0.5f, 1.0f, 1.0f}, {0.5f, 0.6f, 1.0f, 1.0f}}});
  EXPECT_TRUE(torch::equal(run(node("NonMaxSuppression", 4, {{"center_point_box", int64_t{1}}}),
                               {centred, torch::tensor({{{0.5f, 0.9f}}}),
                                torch::tensor(9, torch::kLong), torch::tensor(0.5f)},
                               11),
                           torch::tensor({{0, 0, 1}}, torch::kLong)));
  EXPECT_THAT(error_of(node("NonMaxSuppression", 2), {boxes, scores.narrow(2, 0, 3)}, 11),
              HasSubstr("boxes have shape [1, 6, 4], scores [1, 2, 3]"));
}

}  // namespace
}  // namespace fcp
