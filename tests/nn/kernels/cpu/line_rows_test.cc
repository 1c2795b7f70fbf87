// The loops against libtorch's operators, and the same bits for a row whatever is beside it.
#include "fcp/nn/kernels/cpu/line_rows.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/cuda.h>
#include <torch/types.h>

#include "fcp/base/special_numbers.h"
#include "fcp/nn/kernels/cuda/conv_back_cuda.h"
#include "fcp/nn/kernels/cuda/cuda_kernels.h"
#include "fcp/nn/kernels/cuda/free_lines_cuda.h"
#include "fcp/nn/ops/op.h"

namespace fcp {
namespace {

torch::Tensor some_coefficients(const std::vector<int64_t>& shape, torch::ScalarType type) {
  const torch::Tensor a = torch::randn(shape, type);
  return a.masked_fill(torch::rand(shape) < 0.2, 0);
}

void expect_formulas(torch::Device device) {
  torch::manual_seed(1);
  for (const int64_t width : {1, 7, 8, 9, 64, 100, 1023, 1024, 3000}) {
    for (const auto type : {torch::kFloat, torch::kDouble}) {
      const torch::Tensor a = some_coefficients({5, 3, width}, type).to(device);
      const auto numbers = [&] { return torch::randn({3, width}, type).to(device); };
      const SideLines lines = {numbers(), numbers(), numbers(), numbers()};
      const torch::Tensor before = torch::randn({5, 3}, type).to(device);
      torch::Tensor bias = before;
      const torch::Tensor found = along_lines(a, lines, 3, bias);
      const torch::Tensor plus = a.clamp_min(0), minus = a.clamp_max(0);
      EXPECT_TRUE(torch::allclose(found, plus * lines.plus_slope + minus * lines.minus_slope));
      const torch::Tensor sums = (plus * lines.plus_bias + minus * lines.minus_bias).sum(2);
      EXPECT_TRUE(torch::allclose(bias, before + sums, 1e-4, 1e-4)) << width;
      const torch::Tensor x = numbers(), scale = torch::rand({width}, type).to(device);
      const RowReach reach = row_reach(a, x, scale, true);
      EXPECT_TRUE(torch::allclose(reach.value, (a * x).sum(2), 1e-4, 1e-4));
      EXPECT_TRUE(torch::allclose(reach.reach, (a * scale).abs().sum(2), 1e-4, 1e-4));
      EXPECT_TRUE(torch::allclose(reach.size, (a * x).abs().sum(2), 1e-4, 1e-4));
      EXPECT_TRUE(torch::allclose(weighted_sums(a, x, 3), reach.value));
      EXPECT_TRUE(torch::allclose(weighted_sums(a, x.abs(), 3, true), reach.size));
      // Alike for all rows, and lying otherwise.
      const torch::Tensor alike = a.narrow(1, 1, 1).expand({5, 3, width});
      EXPECT_TRUE(torch::allclose(weighted_sums(alike, x, 3), (alike * x).sum(2), 1e-4, 1e-4));
      torch::Tensor other = before;
      const torch::Tensor turned = a.transpose(0, 2).contiguous().transpose(0, 2);
      EXPECT_TRUE(torch::equal(along_lines(turned, lines, 3, other), found));
      EXPECT_TRUE(torch::equal(other, bias));
    }
  }
}

TEST(LineRows, LinesAndSumsAreThoseOfTheirFormulas) { expect_formulas(torch::kCPU); }

TEST(LineRows, AlsoOnACudaDevice) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "this machine has no CUDA device";
  expect_formulas(torch::kCUDA);
}

// Out, sums, and the gradients of a weighted sum of both to the coefficients and to the slopes.
Tensors hinge_by_formula(const torch::Tensor& given, const OneHinge& lines) {
  const torch::Tensor a = given.detach().clone().requires_grad_();
  const torch::Tensor slope = lines.slope.detach().clone().requires_grad_();
  const torch::Tensor free = lines.plus ? a.clamp_min(0) : a.clamp_max(0);
  const torch::Tensor other = a - free;
  const torch::Tensor out = free * slope + other * lines.fixed_slope;
  const torch::Tensor sums = (free * lines.bias + other * lines.fixed_bias).sum({2, 3});
  const auto gradients = torch::autograd::grad({(out.square().sum() + 3 * sums.sum())}, {a, slope});
  return {out.detach(), sums.detach(), gradients[0], gradients[1]};
}

TEST(LineRows, FreeSlopesOfAHingeOnACudaDevice) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "this machine has no CUDA device";
  if constexpr (kCudaKernels) {
    torch::manual_seed(3);
    for (const int64_t width : {3, 700}) {
      const auto numbers = [&] { return torch::randn({4, 2, width}, torch::kDouble).cuda(); };
      for (const bool plus : {true, false}) {
        const torch::Tensor given = torch::randn({5, 4, 2, width}, torch::kDouble).cuda();
        const OneHinge lines = {torch::rand({5, 4, 2, width}, torch::kDouble).cuda(), numbers(),
                                numbers(), numbers(), plus};
        ASSERT_TRUE(takes_free_lines_cuda(given, 4));
        const torch::Tensor a = given.clone().requires_grad_();
        OneHinge free = lines;
        free.slope = lines.slope.clone().requires_grad_();
        const HingeResult made = along_free_lines_cuda(a, free);
        const auto gradients =
            torch::autograd::grad({made.out.square().sum() + 3 * made.sums.sum()}, {a, free.slope});
        const Tensors expected = hinge_by_formula(given, lines);
        EXPECT_TRUE(torch::allclose(made.out.detach(), expected[0]));
        EXPECT_TRUE(torch::allclose(made.sums.detach(), expected[1]));
        EXPECT_TRUE(torch::allclose(gradients[0], expected[2]));
        EXPECT_TRUE(torch::allclose(gradients[1], expected[3]));
      }
    }
  }
}

TEST(LineRows, ConvolutionsGoBackOnACudaDevice) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "this machine has no CUDA device";
  if constexpr (kCudaKernels) {
    torch::manual_seed(4);
    for (const int64_t groups : {1, 2}) {
      for (const int64_t stride : {1, 2, 3}) {
        for (const int64_t pad : {0, 1, 2}) {
          const auto options = torch::TensorOptions().dtype(torch::kDouble).device(torch::kCUDA);
          const torch::Tensor w = torch::randn({4, 6 / groups, 3, 4}, options);
          const torch::Tensor x = torch::randn({7, 6, 11, 12}, options).requires_grad_();
          const std::vector<int64_t> strides = {stride, stride}, pads = {pad, pad};
          const torch::Tensor y = torch::conv2d(x, w, {}, strides, pads, {1, 1}, groups);
          const torch::Tensor given = torch::randn_like(y);
          const torch::Tensor expected = torch::autograd::grad({y}, {x}, {given})[0];
          const ConvPlan plan = {strides, {1, 1}, pads, pads, {}, groups};
          ASSERT_TRUE(takes_conv_back_cuda(given, w, plan));
          const torch::Tensor a = given.clone().requires_grad_();
          const torch::Tensor found = conv_back_cuda(a, w, plan, 11, 12);
          EXPECT_TRUE(torch::allclose(found.detach(), expected)) << groups << stride << pad;
          // The gradient of the gradient is the convolution.
          const torch::Tensor back = torch::autograd::grad({found}, {a}, {x.detach()})[0];
          EXPECT_TRUE(torch::allclose(back, y.detach())) << groups << stride << pad;
        }
      }
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
