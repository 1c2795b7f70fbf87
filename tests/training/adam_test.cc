#include "fcp/training/adam.h"

#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/types.h>

#include "fcp/base/random.h"

namespace fcp {
namespace {

TEST(AdamTest, TakesTheStepsOfTorchAdam) {
  constexpr size_t kCount = 37;  // not a multiple of any vector width
  const AdamOptions options{.rate = 0.01, .weight_decay = 0.1};
  Random random(1);
  std::vector<float> ours(kCount);
  for (float& value : ours) value = static_cast<float>(random.normal());
  torch::Tensor theirs = torch::tensor(ours).requires_grad_(true);
  Adam adam(kCount, options);
  torch::optim::Adam reference(
      {theirs}, torch::optim::AdamOptions(options.rate).weight_decay(options.weight_decay));
  for (int step = 0; step < 200; ++step) {
    std::vector<float> gradient(kCount);
    for (float& value : gradient) value = static_cast<float>(random.normal());
    adam.step(ours, gradient);
    theirs.mutable_grad() = torch::tensor(gradient);
    reference.step();
    const torch::Tensor difference = (torch::tensor(ours) - theirs.detach()).abs();
    ASSERT_LT(difference.max().item<float>(), 2e-6f) << "after step " << step;
  }
}

// Before bias correction could matter: the first step is rate · sign(gradient) whatever its size.
TEST(AdamTest, FirstStepHasTheLengthOfTheRate) {
  std::vector<float> parameters{1, 1, 1};
  Adam adam(3, {.rate = 0.5, .weight_decay = 0});
  adam.step(parameters, std::vector<float>{100.0f, -0.01f, 0.0f});
  EXPECT_NEAR(parameters[0], 0.5, 1e-5);
  EXPECT_NEAR(parameters[1], 1.5, 1e-5);
  EXPECT_EQ(parameters[2], 1);
}

// With one gradient throughout, every step has the length of the rate that it is given.
TEST(AdamTest, TakesANewRate) {
  std::vector<float> parameters{1};
  Adam adam(1, {.rate = 0.5, .weight_decay = 0});
  adam.step(parameters, std::vector<float>{3.0f});
  adam.set_rate(0.125);
  adam.step(parameters, std::vector<float>{3.0f});
  EXPECT_NEAR(parameters[0], 1 - 0.5 - 0.125, 1e-5);
}

}  // namespace
}  // namespace fcp
