#include "fcp/training/fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/base/random.h"
#include "fcp/training/adam.h"
#include "fcp/training/backpropagation.h"

namespace fcp {
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
