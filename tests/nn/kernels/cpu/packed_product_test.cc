// Products of matrices and of stacks of them: equal to sums in double precision at every edge of
// tiles and blocks, with bits that depend on a row and a column alone.
#include "fcp/nn/kernels/cpu/packed_product.h"

#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/nn/kernels/cpu/epilogue.h"
#include "fcp/nn/kernels/cpu/row_product.h"

namespace fcp {
namespace {

template <typename Number>
MatrixView<const Number> view_of(const torch::Tensor& x) {
  return {x.data_ptr<Number>(), static_cast<size_t>(x.size(0)), static_cast<size_t>(x.size(1)),
          x.stride(0), x.stride(1)};
}

// With a gap behind each row of the result, where nothing may be written.
template <typename Number>
torch::Tensor product_of(const torch::Tensor& a, const torch::Tensor& b,
                         const ProductEpilogue<Number>& end = {}) {
  const torch::Tensor out = torch::full({a.size(0), b.size(1) + 3}, 7, a.options());
  multiply_panels<Number>(view_of<Number>(a), PackedPanels<Number>(view_of<Number>(b)),
                          {out.data_ptr<Number>(), static_cast<size_t>(a.size(0)),
                           static_cast<size_t>(b.size(1)), out.stride(0), 1},
                          end);
  EXPECT_TRUE(out.narrow(1, b.size(1), 3).eq(7).all().item<bool>());
  return out.narrow(1, 0, b.size(1));
}

const std::vector<std::tuple<int64_t, int64_t, int64_t>> kShapes = {
    {1, 1, 1},   {2, 5, 7},   {3, 17, 8},    {5, 64, 9},     {6, 255, 16}, {7, 256, 17},
    {8, 257, 3}, {12, 0, 20}, {13, 600, 65}, {241, 3, 130},  {480, 1, 1},  {4, 513, 64},
    {9, 30, 63}, {11, 2, 31}, {31, 100, 33}, {239, 260, 24}, {5, 20, 20},  {10, 9, 12}};

TEST(PackedProduct, EqualsTheProductInDoublePrecision) {
  torch::manual_seed(1);
  for (const auto& [n, k, m] : kShapes) {
    const torch::Tensor a = torch::randn({n, k}, torch::kDouble);
    const torch::Tensor b = torch::randn({k, m}, torch::kDouble);
    const torch::Tensor exact = torch::matmul(a, b);
    EXPECT_TRUE(torch::allclose(product_of<double>(a, b), exact, 1e-12, 1e-12)) << n << " " << m;
    const torch::Tensor fa = a.to(torch::kFloat), fb = b.to(torch::kFloat);
    const torch::Tensor wide = torch::matmul(fa.to(torch::kDouble), fb.to(torch::kDouble));
    const torch::Tensor found = product_of<float>(fa, fb);
    EXPECT_TRUE(torch::allclose(found.to(torch::kDouble), wide, 1e-5, 1e-4)) << n << " " << m;
    EXPECT_TRUE(
        torch::equal(product_of<float>(fa.t().contiguous().t(), fb.t().contiguous().t()), found))
        << "transposed " << n << " " << m;
  }
}

// `added` has the same gap behind its rows as the result.
TEST(PackedProduct, AddsBiasesAndATensorAndBends) {
  torch::manual_seed(2);
  for (const auto& [n, k, m] : kShapes) {
    const torch::Tensor a = torch::randn({n, k}), b = torch::randn({k, m});
    const torch::Tensor rows = torch::randn({n}), columns = torch::randn({m});
    const torch::Tensor added = torch::randn({n, m + 3});
    const torch::Tensor plain = product_of<float>(a, b);
    ProductEpilogue<float> end;
    end.rows = rows.data_ptr<float>();
    EXPECT_TRUE(torch::equal(product_of<float>(a, b, end), plain + rows.unsqueeze(1)));
    end = {};
    end.columns = columns.data_ptr<float>();
    EXPECT_TRUE(torch::equal(product_of<float>(a, b, end), plain + columns));
    end.added = added.data_ptr<float>();
    const torch::Tensor sum = plain + columns + added.narrow(1, 0, m);
    EXPECT_TRUE(torch::equal(product_of<float>(a, b, end), sum));
    for (const ActivationKind bend :
         {ActivationKind::kRelu, ActivationKind::kClip, ActivationKind::kHardSwish,
          ActivationKind::kHardSigmoid, ActivationKind::kGelu, ActivationKind::kErfGelu}) {
      end.activation = {bend, 0.3f, 0.9f};
      EXPECT_TRUE(torch::equal(product_of<float>(a, b, end), activated(sum, end.activation)))
          << n << " " << m << " " << static_cast<int>(bend);
    }
  }
}

TEST(PackedProduct, BitsDependOnTheRowAndTheColumnAlone) {
  torch::manual_seed(3);
  const torch::Tensor a = torch::randn({250, 300}), b = torch::randn({300, 70});
  const torch::Tensor all = product_of<float>(a, b);
  for (const int64_t row : {0, 5, 6, 239, 240, 249}) {
    for (const int64_t column : {0, 15, 16, 47, 63, 64, 69}) {
      const torch::Tensor one =
          product_of<float>(a.narrow(0, row, 1), b.narrow(1, column, 1).contiguous());
      EXPECT_EQ(one.item<float>(), all[row][column].item<float>()) << row << " " << column;
    }
  }
}

TEST(StackProduct, EqualsLibtorchsOfViewsAndBroadcasts) {
  torch::manual_seed(4);
  const auto expect_equal = [](const torch::Tensor& a, const torch::Tensor& b) {
    const torch::Tensor exact = torch::matmul(a.to(torch::kDouble), b.to(torch::kDouble));
    const torch::Tensor found = stack_product(a, b);
    ASSERT_EQ(found.sizes(), exact.sizes());
    EXPECT_TRUE(torch::allclose(found.to(torch::kDouble), exact, 1e-5, 1e-5)) << a.sizes();
  };
  const torch::Tensor tokens = torch::randn({3, 11, 4, 8});  // [batch, tokens, heads, width]
  const torch::Tensor heads = tokens.transpose(1, 2);
  expect_equal(heads, heads.transpose(2, 3));
  expect_equal(torch::softmax(torch::randn({3, 4, 11, 11}), -1), heads);
  expect_equal(torch::randn({2, 1, 5, 6}), torch::randn({4, 6, 7}));
  expect_equal(torch::randn({5, 6}), torch::randn({4, 6, 7}));
  expect_equal(torch::randn({0, 5, 6}), torch::randn({1, 6, 7}));
  expect_equal(torch::randn({2, 5, 6}, torch::kDouble), torch::randn({2, 6, 7}, torch::kDouble));
}

TEST(StackProduct, GradientsFlowToBothSidesAndLeaveTheBitsAlone) {
  torch::manual_seed(5);
  torch::Tensor a = torch::randn({2, 3, 4}), b = torch::randn({2, 4, 5});
  const torch::Tensor plain = stack_product(a, b);
  a.requires_grad_();
  b.requires_grad_();
  const torch::Tensor product = stack_product(a, b);
  EXPECT_TRUE(torch::equal(product.detach(), plain));
  const auto slopes = torch::autograd::grad({product.square().sum()}, {a, b});
  EXPECT_TRUE(torch::allclose(slopes[0], 2 * torch::matmul(plain, b.transpose(1, 2)), 1e-4, 1e-4));
  EXPECT_TRUE(torch::allclose(slopes[1], 2 * torch::matmul(a.transpose(1, 2), plain), 1e-4, 1e-4));
}

}  // namespace
}  // namespace fcp
