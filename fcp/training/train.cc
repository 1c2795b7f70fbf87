#include "fcp/training/train.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <span>

#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/base/random.h"
#include "fcp/nn/runtime/single_thread.h"
#include "fcp/training/adam.h"
#include "fcp/training/export.h"
#include "fcp/training/mlp.h"
#include "fcp/training/training_data.h"

namespace fcp {
namespace {

// Multiplications of the largest product of a step.
double largest_product(const MlpOptions& network, int64_t batch) {
  int64_t widest = std::max(network.inputs, network.outputs);
  for (const int64_t width : network.hidden) widest = std::max(widest, width);
  return static_cast<double>(batch) * static_cast<double>(widest) * static_cast<double>(widest);
}

void check_sizes(const TrainOptions& options) {
  for (const int64_t width : options.layers) {
    if (width < 1) fail("a hidden layer of width ", width, ", expected at least 1");
  }
  if (options.batch < 1) fail("batches of ", options.batch, " rows, expected at least 1");
  if (options.epochs < 0) fail(options.epochs, " epochs, expected at least 0");
  if (!(options.dropout >= 0 && options.dropout < 1)) {
    fail("dropout ", options.dropout, ", expected at least 0 and below 1");
  }
  if (!(options.holdout >= 0 && options.holdout < 1)) {
    fail("hold-out ", options.holdout, ", expected at least 0 and below 1");
  }
  if (!(options.rate > 0 && std::isfinite(options.rate))) {
    fail("learning rate ", options.rate, ", expected above 0");
  }
  if (!(options.weight_decay >= 0 && std::isfinite(options.weight_decay))) {
    fail("weight decay ", options.weight_decay, ", expected at least 0");
  }
}

void check_loss(const TrainOptions& options) {
  const bool quantile = options.loss == Loss::kQuantile;
  if (quantile && !(options.low > 0 && options.low < options.high && options.high < 1)) {
    fail("quantile levels ", options.low, " and ", options.high, ", expected 0 < low < high < 1");
  }
  if (options.two_networks && !quantile) {
    fail("two networks are for quantile loss, found ", loss_name(options.loss));
  }
  if (options.classes != 0 && options.loss != Loss::kCrossEntropy) {
    fail("a number of classes is for cross-entropy, found ", loss_name(options.loss));
  }
}

// The losses of the networks to train: one, or one for each quantile.
std::vector<LossFunction> loss_functions(const TrainOptions& options) {
  if (options.loss != Loss::kQuantile) return {{options.loss, {}, options.weights}};
  if (!options.two_networks) return {{options.loss, {options.low, options.high}, options.weights}};
  return {{options.loss, {options.low}, options.weights},
          {options.loss, {options.high}, options.weights}};
}

int64_t output_count(const TrainingData& data, const TrainOptions& options) {
  const bool labels = options.loss == Loss::kCrossEntropy;
  const int64_t columns = labels ? count_classes(data.y, options.classes) : data.targets;
  check_loss_weights(options.weights, columns, labels ? "class" : "target");
  if (options.loss != Loss::kQuantile) return columns;
  return options.two_networks ? columns : 2 * columns;
}

FitSettings fit_options(const TrainOptions& options, size_t network) {
  return {.dropout = options.dropout,
          .rate = options.rate,
          .weight_decay = options.weight_decay,
          .batch = options.batch,
          .epochs = options.epochs,
          .holdout = options.holdout,
          .seed = network == 0 ? options.seed : Random(options.seed).bits()};
}

}  // namespace

TrainResult train_network(const Array& x, const Array& y, const TrainOptions& options,
                          const TrainProgress& progress) {
  const auto start = std::chrono::steady_clock::now();
  check_sizes(options);
  check_loss(options);
  const TrainingData data = prepare_training_data(x, y, options.loss, options.scale);
  const MlpOptions shape{data.inputs, options.layers, output_count(data, options)};
  constexpr double kWorthSharing = 1 << 24;
  const SingleThread one_thread(largest_product(shape, options.batch) < kWorthSharing);

  TrainResult result;
  std::vector<Mlp> networks;
  for (const LossFunction& loss : loss_functions(options)) {
    const size_t index = networks.size();
    const FitSettings fitting = fit_options(options, index);
    networks.push_back(initial_mlp(shape, fit_seeds(fitting.seed).initial));
    FitProgress report;
    if (progress) report = [&progress, index](const FitStep& step) { progress({index, step}); };
    result.histories.push_back(fit(networks.back(), data, loss, fitting, report));
  }
  const Mlp whole = networks.size() == 1 ? networks[0] : join_networks(networks[0], networks[1]);
  result.graph = export_mlp(whole, data.scaling, options.loss);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  result.seconds = elapsed.count();
  return result;
}

int64_t most_train_steps(int64_t rows, const TrainOptions& options) {
  const int64_t aside = holdout_rows(rows, options.holdout);
  const auto batches = [&](int64_t n) { return (n + options.batch - 1) / options.batch; };
  const int64_t searching = options.epochs * batches(rows - aside);
  const int64_t networks = options.loss == Loss::kQuantile && options.two_networks ? 2 : 1;
  return networks * (aside > 0 ? 2 : 1) * searching;
}

namespace {

using RowIndices = std::span<const size_t>;

// One run of the optimiser over some of the rows, from the weights `mlp` has.
class FitRun {
 public:
  FitRun(Mlp& mlp, const TrainingData& data, const LossFunction& loss, const FitSettings& options,
         const FitProgress& progress, bool refit, uint64_t seed)
      : mlp_(mlp),
        data_(data),
        loss_(loss),
        options_(options),
        progress_(progress),
        refit_(refit),
        random_(seed),
        pass_(mlp, options.batch, options.dropout),
        adam_(mlp.parameters().size(),
              {.rate = options.rate, .weight_decay = options.weight_decay}),
        targets_(static_cast<size_t>(options.batch * data.targets)) {}

  int64_t steps() const { return steps_; }

  // All rows once in a new order, or until the optimiser has taken `most_steps`. The mean loss.
  double run_epoch(RowIndices rows, int64_t most_steps) {
    ++epoch_;
    const std::vector<size_t> order = random_.permutation(rows.size());
    std::vector<size_t> shuffled(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) shuffled[i] = rows[order[i]];
    LossSum total;
    int64_t batch = 0;
    for (size_t start = 0; start < shuffled.size() && steps_ < most_steps; start += batch_size()) {
      check_interrupted();
      const RowIndices chosen = block(shuffled, start);
      const LossSum loss = step(chosen);
      total.sum += loss.mean() * static_cast<double>(chosen.size());
      total.weight += static_cast<double>(chosen.size());
      if (progress_) progress_({refit_, epoch_, ++batch, loss.mean()});
    }
    return total.mean();
  }

  double evaluate(RowIndices rows) {
    LossSum total;
    for (size_t start = 0; start < rows.size(); start += batch_size()) {
      const LossSum loss = forward(block(rows, start), nullptr, false);
      total.sum += loss.sum;
      total.weight += loss.weight;
    }
    return checked(total).mean();
  }

 private:
  size_t batch_size() const { return static_cast<size_t>(options_.batch); }

  RowIndices block(RowIndices rows, size_t start) const {
    return rows.subspan(start, std::min(batch_size(), rows.size() - start));
  }

  LossSum step(RowIndices rows) {
    const LossSum loss = forward(rows, &random_, true);
    checked(loss);
    adam_.step(mlp_.parameters(), pass_.backward());
    ++steps_;
    return loss;
  }

  LossSum forward(RowIndices rows, Random* dropout, bool with_gradient) {
    const size_t inputs = static_cast<size_t>(data_.inputs);
    const size_t columns = static_cast<size_t>(data_.targets);
    const std::span<float> batch = pass_.inputs(static_cast<int64_t>(rows.size()));
    for (size_t i = 0; i < rows.size(); ++i) {
      std::copy_n(data_.x.data() + rows[i] * inputs, inputs, batch.data() + i * inputs);
      std::copy_n(data_.y.data() + rows[i] * columns, columns, targets_.data() + i * columns);
    }
    const std::span<const float> predictions = pass_.forward(dropout);
    return evaluate_loss(loss_, static_cast<int64_t>(rows.size()), predictions,
                         std::span(targets_).first(rows.size() * columns),
                         with_gradient ? pass_.output_gradient() : std::span<float>());
  }

  const LossSum& checked(const LossSum& loss) const {
    if (!std::isfinite(loss.sum)) {
      fail("training diverged in epoch ", epoch_,
           ": the loss is not finite; expected a rate below ", options_.rate);
    }
    return loss;
  }

  Mlp& mlp_;
  const TrainingData& data_;
  const LossFunction& loss_;
  const FitSettings& options_;
  const FitProgress& progress_;
  bool refit_;
  Random random_;
  Backpropagation pass_;
  Adam adam_;
  std::vector<float> targets_;
  int64_t steps_ = 0;
  int64_t epoch_ = 0;
};

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

}  // namespace

FitSeeds fit_seeds(uint64_t seed) {
  Random random(seed);
  FitSeeds seeds;
  seeds.initial = random.bits();
  seeds.holdout = random.bits();
  seeds.search = random.bits();
  seeds.refit = random.bits();
  return seeds;
}

int64_t holdout_rows(int64_t rows, double holdout) {
  const double wanted = std::ceil(holdout * static_cast<double>(rows) - 1e-9);
  return std::min(static_cast<int64_t>(wanted), rows - 1);
}

FitHistory fit(Mlp& mlp, const TrainingData& data, const LossFunction& loss,
               const FitSettings& options, const FitProgress& progress) {
  FitHistory history;
  if (options.epochs == 0) return history;
  const torch::NoGradGuard no_gradients;
  const FitSeeds seeds = fit_seeds(options.seed);
  const std::vector<size_t> rows =
      Random(seeds.holdout).permutation(static_cast<size_t>(data.rows));
  const size_t aside = static_cast<size_t>(holdout_rows(data.rows, options.holdout));
  const RowIndices holdout = RowIndices(rows).first(aside);
  const RowIndices rest = RowIndices(rows).subspan(aside);

  Mlp searched = mlp;
  FitRun search(searched, data, loss, options, progress, false, seeds.search);
  double best = std::numeric_limits<double>::infinity();
  for (int64_t epoch = 1; epoch <= options.epochs; ++epoch) {
    history.training_loss.push_back(search.run_epoch(rest, kNoLimit));
    if (aside > 0) history.holdout_loss.push_back(search.evaluate(holdout));
    if (aside > 0 && !(history.holdout_loss.back() <= best)) continue;
    if (aside > 0) best = history.holdout_loss.back();
    history.best_epoch = epoch;
    history.steps = search.steps();
  }
  if (aside == 0) {
    mlp = searched;
    return history;
  }
  FitRun refit(mlp, data, loss, options, progress, true, seeds.refit);
  while (refit.steps() < history.steps) refit.run_epoch(rows, history.steps);
  return history;
}

}  // namespace fcp
