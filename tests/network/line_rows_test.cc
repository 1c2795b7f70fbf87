// The loops against libtorch's operators, and the same bits for a row whatever is beside it.
#include "fcp/network/line_rows.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "fcp/base/infinity.h"

namespace fcp {
namespace {

torch::Tensor some_coefficients(const std::vector<int64_t>& shape, torch::ScalarType type) {
  const torch::Tensor a = torch::randn(shape, type);
  return a.masked_fill(torch::rand(shape) < 0.2, 0);
}

TEST(LineRows, LinesAndSumsAreThoseOfTheirFormulas) {
  torch::manual_seed(1);
  for (const int64_t width : {1, 7, 8, 9, 64, 100}) {
    for (const auto type : {torch::kFloat, torch::kDouble}) {
      const torch::Tensor a = some_coefficients({5, 3, width}, type);
      const auto numbers = [&] { return torch::randn({3, width}, type); };
      const SideLines lines = {numbers(), numbers(), numbers(), numbers()};
      const torch::Tensor before = torch::randn({5, 3}, type);
      torch::Tensor bias = before;
      const torch::Tensor found = along_lines(a, lines, 3, bias);
      const torch::Tensor plus = a.clamp_min(0), minus = a.clamp_max(0);
      EXPECT_TRUE(torch::allclose(found, plus * lines.plus_slope + minus * lines.minus_slope));
      const torch::Tensor sums = (plus * lines.plus_bias + minus * lines.minus_bias).sum(2);
      EXPECT_TRUE(torch::allclose(bias, before + sums, 1e-4, 1e-4)) << width;
      const torch::Tensor x = numbers(), scale = torch::rand({width}, type);
      const RowReach reach = row_reach(a, x, scale, true);
      EXPECT_TRUE(torch::allclose(reach.value, (a * x).sum(2), 1e-4, 1e-4));
      EXPECT_TRUE(torch::allclose(reach.reach, (a * scale).abs().sum(2), 1e-4, 1e-4));
      EXPECT_TRUE(torch::allclose(reach.size, (a * x).abs().sum(2), 1e-4, 1e-4));
      EXPECT_TRUE(torch::allclose(weighted_sums(a, x, 3), reach.value));
      EXPECT_TRUE(torch::allclose(weighted_sums(a, x.abs(), 3, true), reach.size));
    }
  }
}

TEST(LineRows, WhatIsInfiniteDoesNotMatterWhereNothingDependsOnIt) {
  const torch::Tensor a = torch::tensor({0.0f, 1.0f, -2.0f}).view({1, 1, 3});
  const torch::Tensor x = torch::tensor({static_cast<float>(kInfinity), 3.0f, 1.0f}).view({1, 3});
  EXPECT_EQ(weighted_sums(a, x, 1).item<float>(), 1);
  EXPECT_EQ(weighted_sums(a, x, 1, true).item<float>(), 5);
  torch::Tensor bias = torch::zeros({1, 1});
  const torch::Tensor one = torch::ones({1, 3});
  along_lines(a, {one, x, one, x}, 1, bias);
  EXPECT_EQ(bias.item<float>(), 1);
}

TEST(LineRows, BitsOfARowDoNotDependOnTheOthers) {
  torch::manual_seed(2);
  const torch::Tensor a = some_coefficients({40, 6, 77}, torch::kFloat);
  const torch::Tensor x = torch::randn({6, 77});
  const torch::Tensor all = weighted_sums(a, x, 6);
  for (int64_t n = 0; n < 6; ++n) {
    const torch::Tensor one =
        weighted_sums(a.narrow(0, 7, 1).narrow(1, n, 1), x.narrow(0, n, 1), 1);
    EXPECT_TRUE(torch::equal(one[0][0], all[7][n]));
  }
}

TEST(LineRows, PlacesThatAreUsed) {
  torch::Tensor a = torch::zeros({2, 3, 5});
  a[1][2][3] = 1;
  a[0][0][1] = -1;
  EXPECT_EQ(used_places(a), (std::vector<bool>{false, true, false, true, false}));
}

}  // namespace
}  // namespace fcp
