#include "fcp/training/ensemble_fit.h"

#include <algorithm>
#include <cmath>

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/parallel.h"

#include "tests/training/training_examples.h"

namespace fcp {
namespace {

struct FitExample {
  torch::Tensor x, y;
  std::vector<FitRows> rows;
  StackLoss loss;
  EnsembleFitOptions options;

  EnsembleFit run(const EnsembleProgress& progress = {}) const {
    return fit_ensemble(x, y, rows, loss, 2, options, progress);
  }
};

// y = x₀ − x₁, which two networks learn from one half of the rows each; or pure noise.
FitExample fit_example(bool noise) {
  FitExample example;
  example.x = tensor_of(normal_array(400, 3, 1));
  example.y = noise ? tensor_of(normal_array(400, 1, 2))
                    : (example.x.select(1, 0) - example.x.select(1, 1)).unsqueeze(1);
  example.rows.resize(2);
  for (int64_t i = 0; i < 400; ++i) {
    example.rows[i % 2 == 0 ? 0 : 1].training.push_back(i);
    example.rows[i % 2 == 0 ? 1 : 0].holdout.push_back(i);
  }
  example.loss.weights = torch::ones({1});
  example.loss.shares = torch::ones({2, 2});
  example.options = {.hidden = {32, 16}, .dropout = 0, .batch = 50, .epochs = 40, .patience = 8};
  return example;
}

double holdout_rmse(const FitExample& example, const EnsembleFit& fit, int64_t network) {
  const std::vector<int64_t>& rows = example.rows[static_cast<size_t>(network)].holdout;
  const torch::Tensor found = network_outputs(fit, network, example.x, rows).select(1, 0);
  const torch::Tensor truth =
      example.y.index_select(0, torch::tensor(rows, torch::kLong)).select(1, 0);
  return (found - truth).square().mean().sqrt().item<double>();
}

TEST(EnsembleFitTest, LearnsAndKeepsTheBestEpoch) {
  const FitExample example = fit_example(false);
  const EnsembleFit fit = example.run();
  for (int64_t s = 0; s < 2; ++s) {
    EXPECT_LT(holdout_rmse(example, fit, s), 0.2) << "deviation of y is 1.4";
    const FitCurve& curve = fit.curves[static_cast<size_t>(s)];
    const auto best = std::min_element(curve.holdout_loss.begin(), curve.holdout_loss.end());
    EXPECT_EQ(curve.best_epoch, best - curve.holdout_loss.begin() + 1);
    // The weights that are returned are those of that epoch: mean of squared and absolute error.
    const std::vector<int64_t>& rows = example.rows[static_cast<size_t>(s)].holdout;
    const torch::Tensor outputs = network_outputs(fit, s, example.x, rows).unsqueeze(0);
    StackLoss own = example.loss;
    own.shares = torch::ones({1, 2});
    const torch::Tensor truth =
        example.y.index_select(0, torch::tensor(rows, torch::kLong)).unsqueeze(0);
    EXPECT_NEAR(own.row_losses(outputs, truth).mean().item<double>(), *best, 1e-5);
  }
}

TEST(EnsembleFitTest, StopsWithoutPatienceAndGoesOnWithTheOthers) {
  FitExample example = fit_example(true);
  example.y.index_put_({torch::tensor(example.rows[1].holdout, torch::kLong)},
                       example.x.narrow(1, 0, 1).index_select(
                           0, torch::tensor(example.rows[1].holdout, torch::kLong)));
  const EnsembleFit fit = example.run();
  for (const FitCurve& curve : fit.curves) {
    const int64_t epochs = static_cast<int64_t>(curve.holdout_loss.size());
    EXPECT_TRUE(epochs == 40 || epochs == curve.best_epoch + 8)
        << epochs << " epochs, best " << curve.best_epoch;
  }
  EXPECT_LT(fit.curves[0].holdout_loss.size(), 40u) << "half of its targets are noise";
}

TEST(EnsembleFitTest, GoesOnFromGivenWeights) {
  FitExample example = fit_example(false);
  const EnsembleFit first = example.run();
  example.options.start = first.parameters;
  example.options.rate = 1e-12;
  example.options.epochs = 2;
  const EnsembleFit same = example.run();
  for (int64_t s = 0; s < 2; ++s) {
    EXPECT_NEAR(holdout_rmse(example, same, s), holdout_rmse(example, first, s), 1e-5);
  }
  // Where nothing is better than the start, the start is kept.
  FitExample noise = fit_example(true);
  noise.options.start = first.parameters;
  noise.options.rate = 10;
  noise.options.epochs = 1;
  const EnsembleFit kept = noise.run();
  EXPECT_EQ(kept.curves[0].best_epoch, 0);
  EXPECT_TRUE(kept.parameters.equal(first.parameters));
}

TEST(EnsembleFitTest, SameSeedSameBits) {
  FitExample example = fit_example(false);
  example.options.epochs = 3;
  example.options.dropout = 0.2;
  const EnsembleFit first = example.run(), second = example.run();
  EXPECT_TRUE(torch::equal(first.parameters, second.parameters));
  example.options.seed = 1;
  EXPECT_FALSE(torch::equal(first.parameters, example.run().parameters));
}

TEST(EnsembleFitTest, AnyNumberOfThreadsGivesTheSameBits) {
  FitExample example = fit_example(false);
  example.options.epochs = 3;
  example.options.dropout = 0.2;
  const int before = at::get_num_threads(), blas_before = blas_threads();
  at::set_num_threads(1);
  const EnsembleFit one = example.run();
  at::set_num_threads(3);
  set_blas_threads(2);
  const int blas = blas_threads();
  const EnsembleFit three = example.run();
  EXPECT_EQ(at::get_num_threads(), 3) << "the caller's threads come back";
  EXPECT_EQ(blas_threads(), blas);
  at::set_num_threads(before);
  set_blas_threads(blas_before);
  EXPECT_TRUE(torch::equal(one.parameters, three.parameters));
}

TEST(EnsembleFitTest, WhatProgressThrowsEndsIt) {
  FitExample example = fit_example(false);
  const auto stop = [](const EnsembleStep& step) {
    if (step.step >= 5) fail("enough");
  };
  EXPECT_THROW(example.run(stop), Error);
}

TEST(EnsembleFitTest, ReportsEveryStep) {
  FitExample example = fit_example(false);
  example.options.epochs = 3;
  std::vector<EnsembleStep> steps;
  example.run([&](const EnsembleStep& step) { steps.push_back(step); });
  ASSERT_EQ(steps.size(), 24u);  // two networks, 200 rows, batches of 50
  for (size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(steps[i].step, static_cast<int64_t>(i) + 1);
  EXPECT_EQ(steps.back().steps, 24);
  EXPECT_EQ(steps.back().epoch, 3);
  EXPECT_EQ(steps.back().seconds_left, 0);
  EXPECT_TRUE(std::isnan(steps.front().loss));
  EXPECT_TRUE(std::isfinite(steps.back().loss));
}

TEST(EnsembleFitTest, ARateFarTooLargeIsAnError) {
  FitExample example = fit_example(false);
  example.options.rate = 1e30;
  try {
    example.run();
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("training diverged"));
  }
}

TEST(EnsembleFitTest, TheRateRisesAndFallsOnce) {
  EXPECT_NEAR(one_cycle(0), 0.04, 1e-12);
  EXPECT_NEAR(one_cycle(0.25), 1, 1e-12);
  EXPECT_NEAR(one_cycle(1), 0, 1e-12);
  for (double done = 0.01; done < 1; done += 0.01) {
    EXPECT_EQ(one_cycle(done) > one_cycle(done - 0.01), done <= 0.25 + 1e-9) << done;
  }
}

}  // namespace
}  // namespace fcp
