// erf, softmax and layer normalisation by our own loops: near libtorch's in double precision, with
// bits that depend on nothing but the row, and gradients that leave them alone.
#include "fcp/nn/kernels/cpu/row_functions.h"

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/nn/kernels/cpu/gradient_of.h"
#include "fcp/nn/runtime/element_types.h"
#include "fcp/nn/runtime/network.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

constexpr float kInfinite = std::numeric_limits<float>::infinity();

// Every row of x alone gives the bits it has among the others.
void expect_rows_alone(const std::function<torch::Tensor(const torch::Tensor&)>& f,
                       const torch::Tensor& x) {
  const torch::Tensor all = f(x);
  for (int64_t i = 0; i < x.size(0); ++i) {
    EXPECT_TRUE(torch::equal(f(x.narrow(0, i, 1)), all.narrow(0, i, 1))) << "row " << i;
  }
}

TEST(ErfOf, IsExactToTwoUnits) {
  const torch::Tensor x = torch::linspace(-5, 5, 100003);
  const torch::Tensor exact = torch::erf(x.to(torch::kDouble));
  const torch::Tensor error = (erf_of(x).to(torch::kDouble) - exact).abs();
  EXPECT_TRUE(error.le(exact.abs() * 1.2e-7 * 1.5 + 1e-40).all().item<bool>());
  const torch::Tensor odd = erf_of(torch::tensor({kInfinite, -kInfinite, 0.0f, NAN}));
  EXPECT_EQ(odd[0].item<float>(), 1);
  EXPECT_EQ(odd[1].item<float>(), -1);
  EXPECT_EQ(odd[2].item<float>(), 0);
  EXPECT_TRUE(std::isnan(odd[3].item<float>()));
  expect_rows_alone(erf_of, torch::randn({37, 5}).t().contiguous());
}

TEST(ErfOf, TakesDoublesAndViewsAndGradients) {
  torch::manual_seed(1);
  const torch::Tensor wide = torch::randn({4, 9}, torch::kDouble);
  EXPECT_TRUE(torch::allclose(erf_of(wide), torch::erf(wide), 1e-14, 1e-14));
  const torch::Tensor x = torch::randn({4, 9}).t().requires_grad_();
  const torch::Tensor y = erf_of(x);
  EXPECT_TRUE(torch::equal(y.detach(), erf_of(x.detach())));
  const torch::Tensor slope = torch::autograd::grad({y.sum()}, {x})[0];
  EXPECT_TRUE(torch::allclose(slope, torch::exp(-x.detach().square()) * 1.1283791f, 1e-5, 1e-6));
}

TEST(SoftmaxRows, EqualsLibtorchsInDoublePrecision) {
  torch::manual_seed(2);
  for (const int64_t width : {1, 2, 7, 8, 9, 16, 31, 197, 1000}) {
    const torch::Tensor x = torch::randn({5, 3, width}) * 8;
    const torch::Tensor exact = torch::softmax(x.to(torch::kDouble), -1);
    EXPECT_TRUE(torch::allclose(softmax_rows(x).to(torch::kDouble), exact, 3e-6, 1e-9)) << width;
    expect_rows_alone(softmax_rows, x);
  }
}

TEST(SoftmaxRows, MaskedPlacesAreZeroAndFullyMaskedRowsAreNotNumbers) {
  const torch::Tensor x = torch::tensor({{1.0f, -kInfinite, 1.0f}, {-1e9f, 0.0f, -200.0f}});
  const torch::Tensor y = softmax_rows(x);
  EXPECT_TRUE(torch::equal(y[0], torch::tensor({0.5f, 0.0f, 0.5f})));
  EXPECT_TRUE(torch::equal(y[1], torch::tensor({0.0f, 1.0f, 0.0f})));
  EXPECT_TRUE(softmax_rows(torch::full({1, 3}, -kInfinite)).isnan().all().item<bool>());
  EXPECT_TRUE(softmax_rows(torch::tensor({{1.0f, NAN}})).isnan().all().item<bool>());
}

TEST(SoftmaxRows, GradientsFlow) {
  torch::manual_seed(3);
  const torch::Tensor x = torch::randn({2, 6}).requires_grad_();
  const torch::Tensor y = softmax_rows(x), weight = torch::randn({2, 6});
  EXPECT_TRUE(torch::equal(y.detach(), softmax_rows(x.detach())));
  const torch::Tensor slope = torch::autograd::grad({y}, {x}, {weight})[0];
  const torch::Tensor p = y.detach();
  const torch::Tensor expected = p * (weight - (weight * p).sum(1, true));
  EXPECT_TRUE(torch::allclose(slope, expected, 1e-4, 1e-6));
}

TEST(NormRows, EqualsLibtorchsInDoublePrecision) {
  torch::manual_seed(4);
  for (const int64_t width : {1, 3, 8, 15, 64, 193}) {
    const torch::Tensor x = torch::randn({6, width}) * 3 + 5;
    const torch::Tensor weight = torch::randn({width}), bias = torch::randn({width});
    for (const bool scaled : {false, true}) {
      const torch::Tensor w = scaled ? weight : torch::Tensor();
      const torch::Tensor b = scaled ? bias : torch::Tensor();
      const torch::Tensor exact =
          torch::layer_norm(x.to(torch::kDouble), {width}, scaled ? w.to(torch::kDouble) : w,
                            scaled ? b.to(torch::kDouble) : b, 1e-5);
      const auto norm = [&](const torch::Tensor& rows) {
        return norm_rows(rows, width, w, b, 1e-5).y;
      };
      EXPECT_TRUE(torch::allclose(norm(x).to(torch::kDouble), exact, 1e-4, 2e-5)) << width;
      expect_rows_alone(norm, x);
    }
  }
}

// The operator with gradients, in both precisions, over two axes, with weights that broadcast.
TEST(NormRows, TheOperatorGivesTheSameWithGradients) {
  torch::manual_seed(5);
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    for (const bool broadcast : {false, true}) {
      Graph graph;
      graph.opset = 17;
      graph.inputs = {make_info("x", {kDynamic, 5, 6})};
      graph.inputs[0].type = element_type(type);
      graph.outputs = {make_info("y", {kDynamic, 5, 6})};
      graph.outputs[0].type = element_type(type);
      const std::vector<int64_t> shape =
          broadcast ? std::vector<int64_t>{1, 6} : std::vector<int64_t>{5, 6};
      graph.initializers["w"] = torch::randn(shape, type);
      graph.initializers["b"] = torch::randn(shape, type);
      graph.nodes = {make_node("LayerNormalization", {"x", "w", "b"}, {"y"},
                               {{"axis", int64_t{1}}, {"epsilon", 1e-3f}})};
      const Network network(graph);
      const torch::Tensor x = torch::randn({4, 5, 6}, type).requires_grad_();
      const torch::Tensor expected =
          torch::layer_norm(x.detach(), {5, 6}, {}, {}, 1e-3) * graph.initializers["w"] +
          graph.initializers["b"];
      const torch::Tensor y = network.forward(x);
      EXPECT_TRUE(torch::allclose(y.detach(), expected, 1e-4, 1e-5));
      const torch::Tensor slope = torch::autograd::grad({y.square().sum()}, {x})[0];
      const torch::Tensor reference = torch::autograd::grad(
          {(torch::layer_norm(x, {5, 6}, {}, {}, 1e-3) * graph.initializers["w"] +
            graph.initializers["b"])
               .square()
               .sum()},
          {x})[0];
      EXPECT_TRUE(torch::allclose(slope, reference, 1e-3, 1e-4));
      const torch::NoGradGuard no_gradients;
      const torch::Tensor plain = network.forward(x);
      EXPECT_TRUE(type == torch::kFloat ? torch::equal(plain, y.detach())
                                        : torch::allclose(plain, y.detach(), 1e-12, 1e-12));
      expect_rows_alone([&](const torch::Tensor& rows) { return network.forward(rows); },
                        x.detach());
    }
  }
}

TEST(GradientOf, GivesOneValueAndTheOthersGradientTwice) {
  const torch::Tensor x = torch::tensor({3.0}, torch::kDouble).requires_grad_();
  const torch::Tensor y = with_gradient_of(x.pow(3), torch::tensor({26.0}, torch::kDouble));
  EXPECT_EQ(y.item<double>(), 26);
  const torch::Tensor first = torch::autograd::grad({y}, {x}, {}, true, /*create_graph=*/true)[0];
  EXPECT_EQ(first.item<double>(), 27);
  EXPECT_EQ(torch::autograd::grad({first}, {x})[0].item<double>(), 18);
}

}  // namespace
}  // namespace fcp
