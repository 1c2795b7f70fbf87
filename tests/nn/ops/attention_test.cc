// Attention against its formula, row by row, and rotations against what they keep.
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/nn/ops/op_testing.h"

namespace fcp {
namespace {

TEST(Attention, IsTheFormulaForEachHead) {
  const torch::Tensor q = random_tensor({2, 4, 3, 5}), k = random_tensor({2, 2, 6, 5});
  const torch::Tensor v = random_tensor({2, 2, 6, 7}), mask = random_tensor({3, 6});
  const torch::Tensor y = run(node("Attention", 4), {q, k, v, mask}, 23);
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t head = 0; head < 4; ++head) {  // two query heads for each key head
      const torch::Tensor scores =
          torch::mm(q[n][head], k[n][head / 2].t()) / std::sqrt(5.0) + mask;
      expect_close(y[n][head], torch::mm(torch::softmax(scores, 1), v[n][head / 2]));
    }
  }
  expect_gradient(node("Attention", 4), {q, k, v, mask}, 23);
}

TEST(Attention, CausalQueriesSeeNoLaterKeys) {
  const torch::Tensor q = random_tensor({1, 1, 4, 3}), k = random_tensor({1, 1, 4, 3});
  torch::Tensor v = random_tensor({1, 1, 4, 3});
  const Node causal = node("Attention", 3, {{"is_causal", int64_t{1}}});
  const torch::Tensor before = run(causal, {q, k, v}, 23);
  v = v.clone();
  v.select(2, 3).fill_(100);
  const torch::Tensor after = run(causal, {q, k, v}, 23);
  expect_close(after.narrow(2, 0, 3), before.narrow(2, 0, 3));
  EXPECT_GT((after - before).abs().max().item<double>(), 1);
}

TEST(Attention, AQueryThatSeesNothingGivesZeros) {
  const torch::Tensor q = random_tensor({1, 1, 2, 3});
  const torch::Tensor mask = torch::tensor({true, true, false, false}).reshape({2, 2});
  const torch::Tensor y = run(node("Attention", 4), {q, q, q, mask}, 23);
  EXPECT_TRUE(torch::equal(y[0][0][1], torch::zeros({3}, torch::kDouble)));
  EXPECT_FALSE(y.isnan().any().item<bool>());
}

TEST(RotaryEmbedding, TurnsPairsByTheirAngle) {
  const torch::Tensor x = random_tensor({2, 3, 4, 6}), angle = random_tensor({10, 3});
  const torch::Tensor at = torch::tensor({0, 1, 2, 3, 9, 8, 7, 6}, torch::kLong).reshape({2, 4});
  for (const int64_t interleaved : {0, 1}) {
    const Node made = node("RotaryEmbedding", 4, {{"interleaved", interleaved}});
    const torch::Tensor y = run(made, {x, angle.cos(), angle.sin(), at}, 23);
    expect_close(y.square().sum(-1), x.square().sum(-1));
    const torch::Tensor a = x[1][2][0][0], b = x[1][2][0][interleaved ? 1 : 3];
    expect_close(y[1][2][0][0], a * angle[9][0].cos() - b * angle[9][0].sin());
    expect_gradient(made, {x, angle.cos(), angle.sin(), at}, 23);
  }
  EXPECT_THAT(error_of(node("RotaryEmbedding", 4), {x, angle.cos(), angle.sin(), at + 5}, 23),
              testing::HasSubstr("is outside an axis of 10"));
}

// Keys that are padding take no part; with is_causal the last query stands at the last true key.
TEST(Attention, CountsTheKeysThatAreNoPadding) {
  const torch::Tensor q = random_tensor({2, 1, 2, 3}), k = random_tensor({2, 1, 5, 3});
  const torch::Tensor v = random_tensor({2, 1, 5, 3});
  const torch::Tensor counts = torch::tensor({3, 5}, torch::kLong);
  for (const int64_t causal : {0, 1}) {
    Node made = node("Attention", 7, {{"is_causal", causal}});
    const torch::Tensor y = run(made, {q, k, v, {}, {}, {}, counts}, 24);
    for (int64_t row = 0; row < 2; ++row) {
      const int64_t keys = row == 0 ? 3 : 5;
      torch::Tensor mask = torch::ones({2, keys}, torch::kBool);
      if (causal != 0) mask[0][keys - 1] = false;
      const auto of = [&](const torch::Tensor& x, int64_t count) {
        return x.narrow(0, row, 1).narrow(2, 0, count);
      };
      const torch::Tensor alone =
          run(node("Attention", 4), {of(q, 2), of(k, keys), of(v, keys), mask}, 23);
      expect_close(y.narrow(0, row, 1), alone);
    }
  }
}

}  // namespace
}  // namespace fcp
