// The activations behind products against their definitions in long double, wherever a vector ends.
#include "fcp/nn/kernels/cpu/epilogue.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/special_numbers.h"

namespace fcp {
namespace {

long double exact_activation(const FusedActivation& with, long double x) {
  const auto held = [](long double y, long double low, long double high) {
    return y < low ? low : y > high ? high : y;
  };
  switch (with.kind) {
    case ActivationKind::kNone:
      return x;
    case ActivationKind::kRelu:
      return x < 0 ? 0 : x;
    case ActivationKind::kClip:
      return held(x, with.first, with.second);
    case ActivationKind::kHardSwish:
      return x * held(x + 3, 0, 6) / 6;
    case ActivationKind::kHardSigmoid:
      return held(with.first * x + with.second, 0, 1);
    case ActivationKind::kGelu:
      return x * (std::erf(x / std::sqrt(2.0L)) + 1) / 2;
    case ActivationKind::kErfGelu:
      return x * (std::erf(x / with.first) + 1) / 2;
  }
  return x;
}

const std::vector<FusedActivation> kFusedActivations = {
    {ActivationKind::kNone},
    {ActivationKind::kRelu},
    {ActivationKind::kClip, -0.5f, 6.0f},
    {ActivationKind::kHardSwish},
    {ActivationKind::kHardSigmoid, 0.2f, 0.5f},
    {ActivationKind::kHardSigmoid, -1.5f, 0.25f},
    {ActivationKind::kGelu},
    {ActivationKind::kErfGelu, 1.41421354f}};

// Sums that round, as 1 + erf does, are off by a unit of the larger of x and 1.
TEST(Epilogue, EqualsTheDefinitions) {
  const int64_t count = 4001;
  const torch::Tensor x = torch::linspace(-9, 9, count);
  for (const FusedActivation& with : kFusedActivations) {
    const torch::Tensor y = activated(x, with);
    for (int64_t i = 0; i < count; ++i) {
      const float at = x[i].item<float>();
      const long double size = std::max(1.0L, std::abs(static_cast<long double>(at)));
      const long double error = std::abs(y[i].item<float>() - exact_activation(with, at));
      ASSERT_LE(error, 2.5L * size * std::numeric_limits<float>::epsilon() / 2)
          << "activation " << static_cast<int>(with.kind) << " of " << at;
    }
  }
}

TEST(Epilogue, ANumbersBitsDoNotDependOnItsPlace) {
  torch::manual_seed(1);
  const torch::Tensor x = torch::randn({7, 40}) * 4, more = torch::randn({7, 40});
  for (const FusedActivation& with : kFusedActivations) {
    const torch::Tensor whole = activated(x + more, with);
    for (size_t columns = 1; columns <= 40; ++columns) {
      torch::Tensor out = torch::full({7, 40}, 99.0f);
      epilogue_rows(with, {x.data_ptr<float>(), more.data_ptr<float>(), out.data_ptr<float>(), 7,
                           columns, 40});
      const auto width = static_cast<int64_t>(columns);
      EXPECT_TRUE(torch::equal(out.narrow(1, 0, width), whole.narrow(1, 0, width))) << columns;
      EXPECT_TRUE(out.narrow(1, width, 40 - width).eq(99).all().item<bool>());
    }
  }
}

TEST(Epilogue, KeepsNanAndTheOrderInMemory) {
  const torch::Tensor x = torch::tensor(
      {NAN, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(), 0.0f});
  for (const FusedActivation& with : kFusedActivations) {
    const torch::Tensor y = activated(x, with);
    EXPECT_TRUE(std::isnan(y[0].item<float>()));
    EXPECT_EQ(y[3].item<float>(), static_cast<float>(exact_activation(with, 0)));
  }
  EXPECT_EQ(activated(x, {ActivationKind::kRelu})[1].item<float>(), kInfinity);
  EXPECT_EQ(activated(x, {ActivationKind::kRelu})[2].item<float>(), 0);
  const torch::Tensor image = torch::randn({2, 5, 3, 4}).contiguous(at::MemoryFormat::ChannelsLast);
  const torch::Tensor y = activated(image, {ActivationKind::kRelu});
  EXPECT_EQ(y.strides(), image.strides());
  EXPECT_TRUE(torch::equal(y, torch::relu(image)));
}

}  // namespace
}  // namespace fcp
