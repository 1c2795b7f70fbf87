// Quantised numbers: what comes back is within half a step, per tensor, per axis and per block.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/network/op_testing.h"

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

}  // namespace
}  // namespace fcp
