#include "fcp/training/train.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/nn/runtime/single_thread.h"
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

}  // namespace fcp
