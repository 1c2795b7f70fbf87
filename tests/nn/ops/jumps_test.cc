// Functions that jump, and waves: literals, gradients and intervals.
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "fcp/base/special_numbers.h"

#include "tests/nn/ops/op_testing.h"

namespace fcp {
namespace {

TEST(Jumps, TellNotANumberAndInfinity) {
  const torch::Tensor x = torch::tensor({0.5, std::nan(""), kInfinity, -kInfinity}, torch::kDouble);
  const auto truths = [](bool a, bool b, bool c, bool d) { return torch::tensor({a, b, c, d}); };
  EXPECT_TRUE(torch::equal(run(node("IsNaN", 1), {x}), truths(false, true, false, false)));
  EXPECT_TRUE(torch::equal(run(node("IsInf", 1), {x}), truths(false, false, true, true)));
  EXPECT_TRUE(torch::equal(run(node("IsInf", 1, {{"detect_negative", int64_t{0}}}), {x}),
                           truths(false, false, true, false)));
  EXPECT_THAT(error_of(node("IsNaN", 1), {torch::ones({1}, torch::kLong)}),
              testing::HasSubstr("expected floating-point numbers"));
}

TEST(Jumps, HalvesGoToTheEvenNumber) {
  const torch::Tensor x = torch::tensor({-2.5, -1.5, -0.5, 0.5, 1.5, 2.5}, torch::kDouble);
  EXPECT_TRUE(torch::equal(run(node("Round", 1), {x}),
                           torch::tensor({-2.0, -2.0, -0.0, 0.0, 2.0, 2.0}, torch::kDouble)));
  for (const char* op : {"Round", "Floor", "Ceil", "Sign"}) {
    EXPECT_FALSE(make_op(node(op, 1), 17)->differentiable());
  }
}

TEST(Waves, HaveGradients) {
  for (const char* op : {"Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh",
                         "Atanh", "Mish", "Softsign"}) {
    SCOPED_TRACE(op);
    expect_gradient(node(op, 1), {random_tensor({20}) * 0.9}, 18);
  }
  expect_gradient(node("Acosh", 1), {random_tensor({20}) + 2.5});
  expect_gradient(node("Shrink", 1, {{"lambd", 0.2f}, {"bias", 0.1f}}), {random_tensor({20})});
  expect_gradient(node("ThresholdedRelu", 1, {{"alpha", 0.1f}}), {random_tensor({20})});
}

// Every point of many intervals, short and long, near and far.
TEST(Waves, IntervalsHoldEveryPoint) {
  for (const char* name : {"Sin", "Cos"}) {
    const auto op = make_op(node(name, 1), 17);
    const torch::Tensor low = random_tensor({4000}) * 50;
    const torch::Tensor width = torch::exp(random_tensor({4000}) * 5) * 0.5;
    const Range range = op->interval({{low, low + width}}, 0)[0];
    for (int i = 0; i <= 60; ++i) {
      const torch::Tensor y = op->forward({low + width * (i / 60.0)})[0];
      EXPECT_TRUE(
          (y >= range.lower - 1e-12).logical_and(y <= range.upper + 1e-12).all().item<bool>());
    }
    const torch::Tensor narrow = width < 1e-2;
    const torch::Tensor loose = range.upper - range.lower > 0.02;
    EXPECT_FALSE(narrow.logical_and(loose).any().item<bool>());
  }
}

}  // namespace
}  // namespace fcp
