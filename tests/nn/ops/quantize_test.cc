// Quantised numbers: what comes back is within half a step, per tensor, per axis and per block.
#include <algorithm>
#include <cmath>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/nn/ops/op_testing.h"

namespace fcp {
namespace {

TEST(Quantize, ComesBackWithinHalfAStep) {
  const torch::Tensor x = random_tensor({3, 4}).to(torch::kFloat);
  const torch::Tensor one = torch::tensor(0.02f), each = torch::tensor({0.01f, 0.02f, 0.03f});
  const torch::Tensor block = (torch::rand({3, 2}) + 1) * 0.01;
  struct Case {
    torch::Tensor scale, zero;
    std::map<std::string, Attribute> attributes;
  };
  for (const Case& c : {Case{one, torch::tensor(5, torch::kChar), {}},
                        Case{each, torch::tensor({1, 2, 3}, torch::kChar), {{"axis", int64_t{0}}}},
                        Case{block,
                             torch::zeros({3, 2}, torch::kChar),
                             {{"axis", int64_t{1}}, {"block_size", int64_t{2}}}}}) {
    const torch::Tensor q = run(node("QuantizeLinear", 3, c.attributes), {x, c.scale, c.zero}, 21);
    EXPECT_EQ(q.scalar_type(), torch::kChar);
    const torch::Tensor back =
        run(node("DequantizeLinear", 3, c.attributes), {q, c.scale, c.zero}, 21);
    const torch::Tensor step = c.scale.dim() == 0   ? c.scale
                               : c.scale.dim() == 1 ? c.scale.unsqueeze(1)
                                                    : c.scale.repeat_interleave(2, 1);
    const torch::Tensor clipped = x.minimum((127 - c.zero.max().item<float>()) * step)
                                      .maximum((-128 - c.zero.min().item<float>()) * step);
    EXPECT_TRUE(((back - clipped).abs() <= step * 1.001).all().item<bool>());
  }
  EXPECT_THAT(error_of(node("QuantizeLinear", 3, {{"axis", int64_t{0}}}),
                       {x, torch::rand({4}), torch::zeros({4}, torch::kChar)}, 13),
              testing::HasSubstr("scale has shape [4], expected [3]"));
}

// The loops for one scale against the definition, number by number; in any layout.
TEST(Quantize, BytesAreThoseOfTheDefinition) {
  torch::Tensor x = random_tensor({2, 5, 7, 11}).to(torch::kFloat) * 6;
  x.view({-1}).slice(0, 0, 6).copy_(torch::tensor({1e30f, -1e30f, 0.25f, 0.75f, -0.25f, 0.0f}));
  x = x.contiguous(at::MemoryFormat::ChannelsLast);
  const torch::Tensor scale = torch::tensor(0.5f);
  for (const auto& [zero, least, most] :
       {std::tuple{torch::tensor(100, torch::kByte), 0.0f, 255.0f},
        std::tuple{torch::tensor(-3, torch::kChar), -128.0f, 127.0f}}) {
    const torch::Tensor q = run(node("QuantizeLinear", 3), {x, scale, zero}, 13);
    const torch::Tensor back = run(node("DequantizeLinear", 3), {q, scale, zero}, 13);
    ASSERT_EQ(q.scalar_type(), zero.scalar_type());
    const torch::Tensor from = x.contiguous(), found = q.contiguous().to(torch::kFloat),
                        again = back.contiguous();
    const float shift = zero.to(torch::kFloat).item<float>();
    for (int64_t i = 0; i < from.numel(); ++i) {
      const float steps = std::nearbyint(from.data_ptr<float>()[i] / 0.5f) + shift;
      const float expected = std::clamp(steps, least, most);
      ASSERT_EQ(found.data_ptr<float>()[i], expected) << from.data_ptr<float>()[i];
      ASSERT_EQ(again.data_ptr<float>()[i], (expected - shift) * 0.5f);
    }
  }
}

// Against the convolution of the numbers that the quantised ones stand for.
TEST(Quantize, ConvolutionIsThatOfTheNumbersMeant) {
  torch::manual_seed(41);
  const torch::Tensor x = torch::randint(0, 255, {2, 3, 5, 5}, torch::kByte);
  const torch::Tensor w = torch::randint(-90, 90, {4, 3, 3, 3}, torch::kChar);
  const torch::Tensor x_zero = torch::tensor(117, torch::kByte);
  const torch::Tensor w_zero = torch::tensor({0, 3, -2, 1}, torch::kChar);
  const torch::Tensor b = torch::randint(-500, 500, {4}, torch::kInt);
  const std::map<std::string, Attribute> pads = {{"pads", std::vector<int64_t>{1, 1, 1, 1}}};
  const torch::Tensor centred = x.to(torch::kDouble) - 117;
  const torch::Tensor weights = w.to(torch::kDouble) - w_zero.to(torch::kDouble).view({4, 1, 1, 1});
  const torch::Tensor sums = torch::conv2d(centred, weights, {}, 1, 1);
  const torch::Tensor whole = run(node("ConvInteger", 4, pads), {x, w, x_zero, w_zero}, 17);
  EXPECT_EQ(whole.scalar_type(), torch::kInt);
  EXPECT_TRUE(torch::equal(whole.to(torch::kDouble), sums));
  const torch::Tensor x_scale = torch::tensor(0.02f), y_scale = torch::tensor(0.9f);
  const torch::Tensor w_scale = torch::tensor({0.01f, 0.02f, 0.03f, 0.005f});
  const torch::Tensor y_zero = torch::tensor(130, torch::kByte);
  const torch::Tensor y = run(node("QLinearConv", 9, pads),
                              {x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, b}, 17);
  EXPECT_EQ(y.scalar_type(), torch::kByte);
  const torch::Tensor meant = (sums + b.to(torch::kDouble).view({1, 4, 1, 1})) *
                              (w_scale.to(torch::kDouble).view({1, 4, 1, 1}) * 0.02);
  const torch::Tensor back = (y.to(torch::kDouble) - 130) * 0.9;
  const torch::Tensor inside = (y > 0).logical_and(y < 255);
  EXPECT_GT(inside.sum().item<int64_t>(), 50);
  EXPECT_TRUE(((back - meant).abs() <= 0.4501).logical_or(inside.logical_not()).all().item<bool>());
}

TEST(Quantize, ToSixteenAndFourBits) {
  const torch::Tensor x = torch::tensor({-3.0f, 0.26f, 0.74f, 1000.0f}),
                      scale = torch::tensor(0.5f);
  const torch::Tensor zero = torch::tensor(32768, torch::kInt);  // as uint16 is held
  const torch::Tensor q = run(node("QuantizeLinear", 3), {x, scale, zero}, 21);
  EXPECT_TRUE(torch::equal(q, torch::tensor({32762, 32769, 32769, 34768}, torch::kInt)));
  EXPECT_TRUE(torch::equal(run(node("QuantizeLinear", 3), {x * 1e6, scale, zero}, 21),
                           torch::tensor({0, 65535, 65535, 65535}, torch::kInt)));
  EXPECT_TRUE(torch::equal(run(node("DequantizeLinear", 3), {q, scale, zero}, 21),
                           torch::tensor({-3.0f, 0.5f, 0.5f, 1000.0f})));
  EXPECT_TRUE(torch::equal(
      run(node("QuantizeLinear", 2, {{"output_dtype", int64_t{22}}}), {x * 2, scale}, 21),
      torch::tensor({-8, 1, 3, 7}, torch::kChar)));
  EXPECT_TRUE(
      torch::equal(run(node("QuantizeLinear", 2, {{"output_dtype", int64_t{17}}}), {x, scale}, 21),
                   torch::tensor({-6.0f, 0.5f, 1.5f, 448.0f})));
}

}  // namespace
}  // namespace fcp
