#include "fcp/methods/calibrations/density_ratio.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"

namespace fcp {
namespace {

using testing::Each;
using testing::Gt;
using testing::Lt;
using testing::ThrowsMessage;

torch::Tensor normal_rows(Random& random, int64_t rows, const std::vector<double>& mean) {
  const auto width = static_cast<int64_t>(mean.size());
  torch::Tensor x = torch::empty({rows, width});
  float* data = x.data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) {
    data[i] = static_cast<float>(mean[static_cast<size_t>(i % width)] + random.normal());
  }
  return x;
}

// N(0, I) against N(μ, I): the log-ratio is μ·x − ‖μ‖² / 2. With 20 000 rows each its coefficients
// have deviations of about 0.02; 0.15 is more than seven of them. The unit of a column does not
// matter, nor does one that is the same everywhere.
TEST(DensityRatio, OfTwoGaussiansIsLinear) {
  Random random(1);
  const torch::Tensor from = normal_rows(random, 20000, {0, 0});
  const torch::Tensor to = normal_rows(random, 20000, {1, -0.5});
  const auto in_units = [](const torch::Tensor& x) {
    return torch::stack(
        {100 + 10 * x.select(1, 0), x.select(1, 1) / 1000, torch::full({x.size(0)}, 0.1f)}, 1);
  };
  const torch::Tensor points =
      torch::tensor({{0.0f, 0.0f}, {1.0f, 0.0f}, {0.0f, 1.0f}, {-1.0f, 0.0f}, {1.0f, -1.0f}});
  const std::vector<double> plain = fit_density_ratio(from, to).weights(points);
  const std::vector<double> scaled =
      fit_density_ratio(in_units(from), in_units(to)).weights(in_units(points));
  for (int64_t i = 0; i < 5; ++i) {
    const double exact = points[i][0].item<double>() - 0.5 * points[i][1].item<double>() - 1.25 / 2;
    EXPECT_NEAR(std::log(plain[static_cast<size_t>(i)]), exact, 0.15) << i;
    EXPECT_NEAR(std::log(scaled[static_cast<size_t>(i)]), exact, 0.15) << i;
  }
}

// Equal samples have the ratio 1 everywhere; rows of any shape are flattened.
TEST(DensityRatio, OfEqualSamplesIsOne) {
  Random random(2);
  const torch::Tensor x = normal_rows(random, 300, {0, 0, 0, 0});
  const DensityRatio ratio = fit_density_ratio(x, x.reshape({300, 2, 2}));
  EXPECT_TRUE(ratio.defined());
  EXPECT_FALSE(DensityRatio().defined());
  for (const double weight : ratio.weights(x)) EXPECT_NEAR(weight, 1, 1e-9);
}

// Missing numbers are read as the mean; the others tell the ratio as before.
TEST(DensityRatio, ReadsMissingNumbers) {
  Random random(4);
  torch::Tensor from = normal_rows(random, 2000, {0, 0}), to = normal_rows(random, 2000, {1, 0});
  const torch::Tensor points = torch::tensor({{0.0f, 0.0f}, {1.0f, std::nanf("")}});
  for (torch::Tensor* rows : {&from, &to}) rows->narrow(0, 0, 200).select(1, 1).fill_(std::nan(""));
  const std::vector<double> weights = fit_density_ratio(from, to).weights(points);
  EXPECT_NEAR(std::log(weights[0]), -0.5, 0.15);
  EXPECT_NEAR(std::log(weights[1]), 0.5, 0.15);
}

// Where a line tells the samples apart the likelihood has no maximum; the ridge keeps it finite.
TEST(DensityRatio, OfSeparableSamplesStaysFinite) {
  Random random(3);
  for (const double gap : {3.0, 30.0, 3e6}) {
    const torch::Tensor from = normal_rows(random, 200, {0}).clamp(-1, 1);
    const torch::Tensor to = from + gap;
    const DensityRatio ratio = fit_density_ratio(from, to);
    EXPECT_TRUE(ratio.slope.isfinite().all().item<bool>()) << gap;
    EXPECT_THAT(ratio.weights(from), Each(Lt(1))) << gap;
    EXPECT_THAT(ratio.weights(to), Each(Gt(1))) << gap;
    // The gradient of the regularised likelihood vanishes: it is the maximum, not where steps ran
    // out.
    const torch::Tensor all = torch::cat({from, to}).to(torch::kDouble);
    const torch::Tensor z = (all - ratio.mean) / ratio.deviation;
    const torch::Tensor odds = torch::sigmoid(z.squeeze(1) * ratio.slope[0] + ratio.slope[1]);
    const torch::Tensor label =
        torch::cat({torch::zeros({200}, torch::kDouble), torch::ones({200}, torch::kDouble)});
    const double gradient =
        ((odds - label) * z.squeeze(1)).sum().item<double>() + ratio.slope[0].item<double>();
    EXPECT_NEAR(gradient, 0, 1e-6) << gap;
  }
}

// Far outside of both samples weights do not overflow.
TEST(DensityRatio, IsBounded) {
  Random random(4);
  const DensityRatio ratio =
      fit_density_ratio(normal_rows(random, 100, {0}), normal_rows(random, 100, {2}));
  const std::vector<double> weights = ratio.weights(torch::tensor({{1e9f}, {-1e9f}}));
  EXPECT_DOUBLE_EQ(weights[0], std::exp(30.0));
  EXPECT_DOUBLE_EQ(weights[1], std::exp(-30.0));
}

TEST(DensityRatio, SaysWhatDoesNotFit) {
  EXPECT_THAT(
      [] {
        fit_density_ratio(torch::zeros({1, 2}), torch::zeros({5, 2}));
      },
      ThrowsMessage<Error>(
          "a likelihood ratio needs at least two rows of each kind; found 1 and 5"));
  EXPECT_THAT(
      [] {
        fit_density_ratio(torch::zeros({4, 2}), torch::zeros({5, 3}));
      },
      ThrowsMessage<Error>("a likelihood ratio compares rows of equal width; found 2 and 3 "
                           "numbers"));
  Random random(5);
  const torch::Tensor x = normal_rows(random, 10, {0, 0});
  EXPECT_THAT(
      [&] {
        fit_density_ratio(x, x).weights(torch::zeros({1, 3}));
      },
      ThrowsMessage<Error>("the likelihood ratio was fitted on rows of 2 numbers; found 3"));
}

}  // namespace
}  // namespace fcp
