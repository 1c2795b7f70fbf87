#include "fcp/training/train.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/base/random.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/nn/runtime/network.h"
#include "fcp/training/training_data.h"

#include "tests/training/training_examples.h"

namespace fcp {
namespace {

using testing::HasSubstr;

double plane(std::span<const float> row) { return 100 + 20 * row[0] - 30 * row[1]; }

// The standard deviation of the target is 36; a network that learned nothing is off by that.
TEST(TrainTest, LearnsALinearFunctionInItsOwnUnit) {
  const Array x = normal_array(3000, 3, 1);
  const TrainResult trained = train_network(x, column_of(x, plane), {.dropout = 0, .epochs = 20});
  const Array fresh = normal_array(1000, 3, 2);
  const torch::Tensor found = Network(trained.graph).forward(tensor_of(fresh));
  const torch::Tensor error = found - tensor_of(column_of(fresh, plane));
  EXPECT_LT(error.square().mean().sqrt().item<double>(), 3);
  ASSERT_EQ(trained.histories.size(), 1u);
  EXPECT_LT(trained.histories[0].holdout_loss.back(), trained.histories[0].holdout_loss.front());
  EXPECT_GT(trained.seconds, 0);
}

// y = (1 + x) · uniform(0, 1) for x in {0, 1}: the quantiles are known for each x. Those of the
// 3,000 rows per side have a standard deviation of 0.004; what the optimiser leaves is larger
// (0.046 at worst over a dozen seeds), so the tolerance is 0.08.
void expect_quantiles(bool two_networks) {
  Random random(3);
  Array x = zeros({6000, 1}), y = zeros({6000, 1});
  for (size_t i = 0; i < 6000; ++i) {
    x.values[i] = static_cast<float>(i % 2);
    y.values[i] = (1 + x.values[i]) * static_cast<float>(random.uniform());
  }
  TrainOptions options{.dropout = 0, .rate = 1e-3, .batch = 500, .epochs = 100, .holdout = 0};
  options.loss = Loss::kQuantile;
  options.two_networks = two_networks;
  const TrainResult trained = train_network(x, y, options);
  ASSERT_EQ(trained.histories.size(), two_networks ? 2u : 1u);
  const Tensors outputs = Network(trained.graph).run({torch::tensor({0.0f, 1.0f}).view({2, 1})});
  for (int64_t i = 0; i < 2; ++i) {
    const double size = static_cast<double>(1 + i);
    EXPECT_NEAR(outputs[0][i][0].item<double>() / size, 0.05, 0.08) << "x = " << i;
    EXPECT_NEAR(outputs[1][i][0].item<double>() / size, 0.95, 0.08) << "x = " << i;
  }
}

TEST(TrainTest, LearnsKnownQuantilesWithOneNetwork) { expect_quantiles(false); }
TEST(TrainTest, LearnsKnownQuantilesWithTwoNetworks) { expect_quantiles(true); }

TEST(TrainTest, LearnsClasses) {
  const Array x = normal_array(2000, 2, 1);
  const auto quadrant = [](std::span<const float> row) {
    return (row[0] > 0 ? 1 : 0) + (row[1] > 0 ? 2 : 0);
  };
  const Array labels = column_of(x, quadrant);
  const TrainResult trained =
      train_network(x, labels, {.epochs = 15, .loss = Loss::kCrossEntropy, .classes = 5});
  const torch::Tensor logits = Network(trained.graph).forward(tensor_of(x));
  ASSERT_EQ(logits.size(1), 5);
  const torch::Tensor right = logits.argmax(1).eq(tensor_of(labels).view({-1}).to(torch::kLong));
  EXPECT_GT(right.to(torch::kFloat).mean().item<double>(), 0.9);
}

TEST(TrainTest, SameSeedSameBits) {
  const Array x = normal_array(500, 4, 1), y = normal_array(500, 2, 2);
  const TrainOptions options{.epochs = 3, .seed = 5};
  const std::string first = serialize_onnx(train_network(x, y, options).graph);
  EXPECT_EQ(serialize_onnx(train_network(x, y, options).graph), first);
  EXPECT_NE(serialize_onnx(train_network(x, y, {.epochs = 3, .seed = 6}).graph), first);
}

TEST(TrainTest, NoEpochsGiveTheInitialNetwork) {
  const Array x = normal_array(50, 4, 1), y = normal_array(50, 1, 2);
  const TrainResult untrained = train_network(x, y, {.epochs = 0, .seed = 5});
  const Mlp start = initial_mlp({.inputs = 4}, fit_seeds(5).initial);
  EXPECT_TRUE(
      untrained.graph.initializers.at("layer3.weight").tensor().equal(start.layers()[2].weight));
}

TEST(TrainTest, ProgressHearsEveryBatchOfAllNetworks) {
  const Array x = normal_array(200, 2, 1), y = normal_array(200, 1, 2);
  const TrainOptions options{.epochs = 3, .loss = Loss::kQuantile, .two_networks = true};
  int64_t calls[2] = {0, 0};
  bool finite = true;
  const TrainResult trained = train_network(x, y, options, [&](const TrainStep& step) {
    ++calls[step.network];
    finite = finite && std::isfinite(step.fit.loss);
  });
  EXPECT_TRUE(finite);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(calls[i], 3 * 3 + trained.histories[i].steps);
  EXPECT_EQ(most_train_steps(200, options), 2 * 2 * 3 * 3);
  EXPECT_LE(calls[0] + calls[1], most_train_steps(200, options));
}

TEST(TrainTest, ThreadSettingIsPutBack) {
  const int before = at::get_num_threads();
  at::set_num_threads(2);
  const Array x = normal_array(50, 2, 1), y = normal_array(50, 1, 2);
  train_network(x, y, {.epochs = 1}, [](const TrainStep&) { EXPECT_EQ(at::get_num_threads(), 1); });
  EXPECT_EQ(at::get_num_threads(), 2);
  at::set_num_threads(before);
}

TEST(TrainDeathTest, InterruptionLeavesThroughInterrupted) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto interrupted_training = [] {
    catch_interrupts();
    int calls = 0;
    try {
      const Array x = normal_array(200, 2, 1), y = normal_array(200, 1, 2);
      train_network(x, y, {}, [&](const TrainStep&) {
        if (++calls == 2) std::raise(SIGINT);
      });
    } catch (const Interrupted& interruption) {
      std::exit(calls == 2 ? interruption.exit_code() : 1);
    }
    std::exit(0);
  };
  EXPECT_EXIT(interrupted_training(), testing::ExitedWithCode(130), "");
}

std::string message_of(const TrainOptions& options) {
  const Array x = normal_array(50, 2, 1);
  const Array y = column_of(x, [](std::span<const float> row) { return row[0] > 0 ? 3 : 0; });
  try {
    train_network(x, y, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(TrainTest, NamesWrongOptions) {
  EXPECT_EQ(message_of({.layers = {64, 0}}), "a hidden layer of width 0, expected at least 1");
  EXPECT_THAT(message_of({.dropout = 1}), HasSubstr("dropout 1"));
  EXPECT_THAT(message_of({.rate = 0}), HasSubstr("learning rate 0"));
  EXPECT_THAT(message_of({.weight_decay = -1}), HasSubstr("weight decay -1"));
  EXPECT_THAT(message_of({.batch = 0}), HasSubstr("batches of 0 rows"));
  EXPECT_THAT(message_of({.epochs = -1}), HasSubstr("-1 epochs"));
  EXPECT_THAT(message_of({.holdout = 1}), HasSubstr("hold-out 1"));
  EXPECT_THAT(message_of({.loss = Loss::kQuantile, .low = 0.9, .high = 0.1}),
              HasSubstr("quantile levels 0.9 and 0.1"));
  EXPECT_THAT(message_of({.two_networks = true}), HasSubstr("two networks"));
  EXPECT_THAT(message_of({.classes = 3}), HasSubstr("number of classes"));
  EXPECT_THAT(message_of({.loss = Loss::kCrossEntropy, .classes = 3}),
              HasSubstr("is 3, expected below 3"));
  EXPECT_THAT(message_of({.weights = {1, 2}}), HasSubstr("found 2 weights"));
  EXPECT_THAT(message_of({.weights = {0}}), HasSubstr("a weight of the loss is 0"));
  EXPECT_THAT(message_of({.loss = Loss::kCrossEntropy, .weights = {1, 2, 3}}),
              HasSubstr("expected 4, one per class"));
}

}  // namespace
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
