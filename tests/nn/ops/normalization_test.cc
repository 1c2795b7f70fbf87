// Group, root-mean-square and local normalisation: gradients, both operator sets, messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/nn/ops/op_testing.h"

namespace fcp {
namespace {

using testing::HasSubstr;

TEST(GroupNormalization, ScalesByGroupAndThenByChannel) {
  const torch::Tensor x = random_tensor({2, 6, 3});
  const torch::Tensor groups = random_tensor({2}), zero = torch::zeros({2}, torch::kDouble);
  const Node made = node("GroupNormalization", 3, {{"num_groups", int64_t{2}}});
  expect_close(run(made, {x, groups, zero}, 18),
               run(made, {x, groups.repeat_interleave(3), zero.repeat_interleave(3)}, 21));
  expect_gradient(made, {x, random_tensor({6}), random_tensor({6})}, 21);
  EXPECT_THAT(error_of(made, {random_tensor({2, 5, 3}), groups, zero}, 18),
              HasSubstr("expected channels that 2 groups divide"));
  EXPECT_THAT(error_of(made, {x, groups, zero}, 21),
              HasSubstr("scale has shape [2], expected [6]"));
}

TEST(RmsNormalization, DividesByTheRootOfTheMeanSquare) {
  const torch::Tensor x = random_tensor({2, 3, 4}), scale = random_tensor({4});
  const torch::Tensor expected = x / (x * x).mean(2, true).add(1e-5).sqrt() * scale;
  // ε is stored in single precision
  expect_close(run(node("RMSNormalization", 2), {x, scale}, 23), expected, 1e-6);
  expect_gradient(node("RMSNormalization", 2, {{"axis", int64_t{1}}}), {x, scale}, 23);
}

TEST(Lrn, LooksAtNeighbouringChannels) {
  const torch::Tensor x = random_tensor({2, 5, 3});
  const Node made = node("LRN", 1, {{"size", int64_t{4}}, {"alpha", 0.5f}, {"beta", 0.75f}});
  torch::Tensor expected = torch::empty_like(x);
  for (int64_t c = 0; c < 5; ++c) {  // from c − 1 to c + 2
    const int64_t first = std::max<int64_t>(0, c - 1), last = std::min<int64_t>(4, c + 2);
    const torch::Tensor sum = x.narrow(1, first, last - first + 1).square().sum(1);
    expected.select(1, c).copy_(x.select(1, c) / (sum * 0.125 + 1).pow(0.75));
  }
  expect_close(run(made, {x}), expected);
  expect_gradient(made, {x});
  EXPECT_THAT(error_of(node("LRN", 1), {x}), HasSubstr("size is 0"));
}

}  // namespace
}  // namespace fcp
