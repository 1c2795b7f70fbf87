#include "fcp/training/fit.h"

#include <algorithm>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"

#include "tests/training/training_examples.h"

namespace fcp {
namespace {

TrainingData noisy_line(int64_t rows) {
  const Array x = normal_array(rows, 3, 1), noise = normal_array(rows, 1, 2);
  Array y = column_of(x, [](std::span<const float> row) { return row[0] - 2 * row[1]; });
  for (size_t i = 0; i < y.values.size(); ++i) y.values[i] += 2 * noise.values[i];
  return prepare_training_data(x, y, Loss::kMse, true);
}

// The same training once more with autograd and torch::optim::Adam, for networks without dropout.
class ReferenceFit {
 public:
  ReferenceFit(const Mlp& start, const TrainingData& data, const FitSettings& options)
      : x_(tensor_of(data.x, {data.rows, data.inputs})),
        y_(tensor_of(data.y, {data.rows, data.targets})),
        batch_(options.batch) {
    for (const DenseLayer& layer : start.layers()) {
      weights_.push_back(layer.weight.clone().requires_grad_(true));
      weights_.push_back(layer.bias.clone().requires_grad_(true));
    }
    optimiser_ = std::make_unique<torch::optim::Adam>(
        weights_, torch::optim::AdamOptions(options.rate).weight_decay(options.weight_decay));
  }

  torch::Tensor loss(const torch::Tensor& rows) const {
    torch::Tensor value = x_.index_select(0, rows);
    for (size_t i = 0; i < weights_.size(); i += 2) {
      value = torch::linear(value, weights_[i], weights_[i + 1]);
      if (i + 2 < weights_.size()) value = value.relu();
    }
    return torch::mse_loss(value, y_.index_select(0, rows));
  }

  void epoch(const torch::Tensor& rows, Random& random, int64_t most_steps) {
    const std::vector<size_t> order = random.permutation(static_cast<size_t>(rows.size(0)));
    const torch::Tensor shuffled =
        rows.index_select(0, torch::tensor(std::vector<int64_t>(order.begin(), order.end())));
    for (const torch::Tensor& chosen : shuffled.split(batch_)) {
      if (steps == most_steps) return;
      optimiser_->zero_grad();
      loss(chosen).backward();
      optimiser_->step();
      ++steps;
    }
  }

  torch::Tensor flat() const {
    std::vector<torch::Tensor> parts;
    for (const torch::Tensor& weight : weights_) parts.push_back(weight.detach().flatten());
    return torch::cat(parts);
  }

  int64_t steps = 0;

 private:
  torch::Tensor x_, y_;
  int64_t batch_;
  std::vector<torch::Tensor> weights_;
  std::unique_ptr<torch::optim::Adam> optimiser_;
};

// Both passes: the losses of the first, the best epoch, and the weights after refitting from the
// same start for as many steps. 130 rows of which 13 are set aside: 117 make 8 batches of 16, the
// last of 5, and all rows make 9, so the refit's last epoch is cut short.
TEST(FitTest, SearchAndRefitAreThoseOfAutogradAndTorchAdam) {
  const TrainingData data = noisy_line(130);
  const FitSettings options{
      .dropout = 0, .rate = 0.02, .batch = 16, .epochs = 12, .holdout = 0.1, .seed = 3};
  const Mlp start = initial_mlp({.inputs = 3, .hidden = {16, 8}, .outputs = 1}, 4);
  Mlp fitted = start;
  const FitHistory history = fit(fitted, data, {}, options);

  const FitSeeds seeds = fit_seeds(options.seed);
  const std::vector<size_t> order = Random(seeds.holdout).permutation(130);
  const torch::Tensor rows = torch::tensor(std::vector<int64_t>(order.begin(), order.end()));
  ReferenceFit search(start, data, options);
  Random random(seeds.search);
  ASSERT_EQ(history.holdout_loss.size(), 12u);
  for (size_t epoch = 0; epoch < 12; ++epoch) {
    search.epoch(rows.narrow(0, 13, 117), random, 1 << 30);
    const double expected = search.loss(rows.narrow(0, 0, 13)).item<double>();
    EXPECT_NEAR(history.holdout_loss[epoch], expected, 1e-3 * expected) << "epoch " << epoch;
  }
  const auto best = std::ranges::min_element(history.holdout_loss) - history.holdout_loss.begin();
  EXPECT_EQ(history.best_epoch, best + 1);
  EXPECT_LT(history.best_epoch, 12) << "the case should be one that overfits";
  EXPECT_EQ(history.steps, history.best_epoch * 8);

  ReferenceFit refit(start, data, options);
  Random again(seeds.refit);
  while (refit.steps < history.steps) refit.epoch(rows, again, history.steps);
  const torch::Tensor ours =
      tensor_of(fitted.parameters(), {static_cast<int64_t>(fitted.parameters().size())});
  EXPECT_LT(largest_difference(ours, refit.flat()), 2e-3);
  EXPECT_GT(largest_difference(ours, search.flat()), 2e-2) << "the bound above must mean something";
}

TEST(FitTest, WithoutHoldoutTheLastEpochStays) {
  const TrainingData data = noisy_line(50);
  Mlp mlp = initial_mlp({.inputs = 3}, 1);
  int64_t calls = 0, last_epoch = 0;
  const FitHistory history =
      fit(mlp, data, {}, {.batch = 20, .epochs = 4, .holdout = 0}, [&](const FitStep& step) {
        ++calls;
        last_epoch = step.epoch;
        EXPECT_FALSE(step.refit);
      });
  EXPECT_EQ(history.best_epoch, 4);
  EXPECT_EQ(history.steps, 12);
  EXPECT_EQ(calls, 12);
  EXPECT_EQ(last_epoch, 4);
  EXPECT_TRUE(history.holdout_loss.empty());
}

TEST(FitTest, NoEpochsLeaveTheNetworkAsItWas) {
  const Mlp start = initial_mlp({.inputs = 3}, 1);
  Mlp mlp = start;
  const FitHistory history = fit(mlp, noisy_line(50), {}, {.epochs = 0});
  EXPECT_EQ(history.best_epoch, 0);
  EXPECT_TRUE(std::ranges::equal(mlp.parameters(), start.parameters()));
}

TEST(FitTest, DivergenceIsAnError) {
  Mlp mlp = initial_mlp({.inputs = 3}, 1);
  try {
    fit(mlp, noisy_line(50), {}, {.rate = 1e30, .epochs = 20});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("training diverged in epoch"));
  }
}

TEST(FitTest, HoldoutIsRoundedUpAndNeverEverything) {
  EXPECT_EQ(holdout_rows(100, 0.05), 5);
  EXPECT_EQ(holdout_rows(101, 0.05), 6);
  EXPECT_EQ(holdout_rows(60, 0.05), 3);
  EXPECT_EQ(holdout_rows(10, 0.05), 1);
  EXPECT_EQ(holdout_rows(10, 0), 0);
  EXPECT_EQ(holdout_rows(10, 0.999), 9);
}

}  // namespace
}  // namespace fcp
