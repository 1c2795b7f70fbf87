#include "fcp/training/ensemble_fit.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>

#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/training/single_thread.h"
#include "fcp/training/stack_adam.h"

namespace fcp {
namespace {

constexpr double kScaleFactor = 10;   // rate of the inputs' scales over that of the weights
constexpr int64_t kEvaluated = 2048;  // rows of one block of a hold-out

torch::Tensor index_tensor(const std::vector<int64_t>& rows) {
  return torch::tensor(rows, torch::kLong);
}

// Rows of x, [S, n] indices → [S, n, columns].
torch::Tensor rows_at(const torch::Tensor& x, const torch::Tensor& indices) {
  return x.index_select(0, indices.flatten()).view({indices.size(0), indices.size(1), x.size(1)});
}

// Hold-outs of several networks as one block: the last row fills up the shorter ones, without
// weight.
struct HoldoutBlock {
  torch::Tensor rows;    // [S, n]
  torch::Tensor weight;  // [S, n], 1 / length of the network's own
};

class EnsembleRun {
 public:
  EnsembleRun(const torch::Tensor& x, const torch::Tensor& y, const std::vector<FitRows>& rows,
              const StackLoss& loss, int64_t outputs, const EnsembleFitOptions& options)
      : x_(x),
        y_(y),
        rows_(rows),
        loss_(loss),
        options_(options),
        shape_{x.size(1), options.hidden, outputs},
        random_(options.seed),
        stack_(shape_, initial_stack(shape_, draw_seeds(rows.size())).to(x.device())),
        adam_(stack_.parameters(), shape_.inputs, kScaleFactor),
        best_(stack_.parameters().clone()),
        best_loss_(rows.size(), std::numeric_limits<double>::infinity()),
        curves_(rows.size()) {
    size_t shortest = rows[0].training.size();
    for (size_t s = 0; s < rows.size(); ++s) {
      active_.push_back(static_cast<int64_t>(s));
      shortest = std::min(shortest, rows[s].training.size());
      orders_.emplace_back(random_.bits());
    }
    batch_ = std::min<int64_t>(options.batch, static_cast<int64_t>(shortest));
    batches_ = static_cast<int64_t>(shortest) / batch_;
    const int64_t widest = *std::max_element(options.hidden.begin(), options.hidden.end());
    masks_.emplace(options.dropout, static_cast<int64_t>(rows.size()) * batch_ * widest,
                   random_.bits(), x.device());
    holdout_ = holdout_block();
  }

  EnsembleFit run(const EnsembleProgress& progress) {
    const torch::NoGradGuard no_gradients;
    constexpr double kWorthSharing = 1 << 26;  // multiplications of a step
    const SingleThread one_thread(static_cast<double>(batch_ * best_.numel()) < kWorthSharing);
    start_ = std::chrono::steady_clock::now();
    for (int64_t epoch = 1; epoch <= options_.epochs && !active_.empty(); ++epoch) {
      const torch::Tensor trained = train_epoch(epoch, progress);
      take_losses(epoch, trained, holdout_losses());
    }
    check_trained();
    return {shape_, best_.to(torch::kCPU), std::move(curves_)};
  }

 private:
  std::vector<uint64_t> draw_seeds(size_t count) {
    std::vector<uint64_t> seeds;
    for (size_t s = 0; s < count; ++s) seeds.push_back(random_.bits());
    return seeds;
  }

  HoldoutBlock holdout_block() const {
    int64_t longest = 0;
    for (const int64_t s : active_) {
      longest = std::max<int64_t>(longest, static_cast<int64_t>(holdout_rows_of(s).size()));
    }
    std::vector<int64_t> indices;
    std::vector<float> weights;
    for (const int64_t s : active_) {
      const std::vector<int64_t>& own = holdout_rows_of(s);
      for (size_t i = 0; i < static_cast<size_t>(longest); ++i) {
        indices.push_back(own[std::min(i, own.size() - 1)]);
        weights.push_back(i < own.size() ? 1 / static_cast<float>(own.size()) : 0);
      }
    }
    const int64_t networks = static_cast<int64_t>(active_.size());
    return {index_tensor(indices).view({networks, longest}).to(x_.device()),
            torch::tensor(weights, torch::kFloat).view({networks, longest}).to(x_.device())};
  }

  const std::vector<int64_t>& holdout_rows_of(int64_t network) const {
    return rows_[static_cast<size_t>(network)].holdout;
  }

  // [S, batches · batch]: each network's own rows in an order of their own.
  torch::Tensor shuffled_rows() {
    std::vector<int64_t> indices;
    for (const int64_t s : active_) {
      const std::vector<int64_t>& own = rows_[static_cast<size_t>(s)].training;
      const std::vector<size_t> order = orders_[static_cast<size_t>(s)].permutation(own.size());
      for (int64_t i = 0; i < batches_ * batch_; ++i) {
        indices.push_back(own[order[static_cast<size_t>(i)]]);
      }
    }
    return index_tensor(indices)
        .view({static_cast<int64_t>(active_.size()), batches_ * batch_})
        .to(x_.device());
  }

  // One pass over the rows; the mean loss of each active network, on the device.
  torch::Tensor train_epoch(int64_t epoch, const EnsembleProgress& progress) {
    const torch::Tensor order = shuffled_rows();
    torch::Tensor total = torch::zeros({stack_.networks()}, x_.options());
    for (int64_t batch = 0; batch < batches_; ++batch) {
      check_interrupted();
      const torch::Tensor rows = order.narrow(1, batch * batch_, batch_);
      const torch::Tensor y = rows_at(y_, rows);
      const torch::Tensor outputs = stack_.forward(rows_at(x_, rows), *masks_);
      total += loss_.row_losses(outputs, y).mean(1);
      stack_.backward(loss_.gradient(outputs, y));
      const double all = static_cast<double>(options_.epochs * batches_);
      const double done = (static_cast<double>(steps_) + 0.5) / all;
      adam_.step(stack_.parameters(), stack_.gradient(), options_.rate * one_cycle(done));
      ++steps_;
      if (progress) progress(progress_step(epoch));
    }
    return total / static_cast<double>(batches_);
  }

  EnsembleStep progress_step(int64_t epoch) const {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
    const int64_t steps = options_.epochs * batches_;
    const double each = elapsed.count() / static_cast<double>(steps_);
    return {epoch, options_.epochs, steps_,
            steps, last_loss_,      each * static_cast<double>(steps - steps_)};
  }

  torch::Tensor holdout_losses() const {
    torch::Tensor total = torch::zeros({stack_.networks()}, x_.options());
    for (int64_t first = 0; first < holdout_.rows.size(1); first += kEvaluated) {
      const int64_t count = std::min(kEvaluated, holdout_.rows.size(1) - first);
      const torch::Tensor rows = holdout_.rows.narrow(1, first, count);
      const torch::Tensor losses =
          loss_.row_losses(stack_.forward(rows_at(x_, rows)), rows_at(y_, rows));
      total += (losses * holdout_.weight.narrow(1, first, count)).sum(1);
    }
    return total;
  }

  // Keeps the weights of networks at their best and lets go of those out of patience.
  void take_losses(int64_t epoch, const torch::Tensor& trained, const torch::Tensor& held) {
    const torch::Tensor both = torch::stack({trained, held}).to(torch::kCPU, torch::kDouble);
    std::vector<int64_t> going_on;  // places in the stack
    double sum = 0;
    for (size_t i = 0; i < active_.size(); ++i) {
      const size_t s = static_cast<size_t>(active_[i]);
      const int64_t place = static_cast<int64_t>(i);
      FitCurve& curve = curves_[s];
      curve.training_loss.push_back(both[0][place].item<double>());
      curve.holdout_loss.push_back(both[1][place].item<double>());
      sum += curve.holdout_loss.back();
      if (curve.holdout_loss.back() < best_loss_[s]) {
        best_loss_[s] = curve.holdout_loss.back();
        curve.best_epoch = epoch;
        best_[active_[i]].copy_(stack_.parameters()[place]);
      }
      const bool finite = std::isfinite(curve.training_loss.back());
      if (finite && epoch - curve.best_epoch < options_.patience) going_on.push_back(place);
    }
    last_loss_ = sum / static_cast<double>(active_.size());
    if (going_on.size() < active_.size()) leave_out(going_on);
  }

  void leave_out(const std::vector<int64_t>& going_on) {
    std::vector<int64_t> active;
    for (const int64_t place : going_on) active.push_back(active_[static_cast<size_t>(place)]);
    active_ = active;
    if (active_.empty()) return;
    const torch::Tensor places = index_tensor(going_on).to(x_.device());
    stack_.keep(places);
    adam_.keep(places);
    if (loss_.shares.defined()) loss_.shares = loss_.shares.index_select(0, places);
    holdout_ = holdout_block();
  }

  void check_trained() const {
    for (const double loss : best_loss_) {
      if (std::isfinite(loss)) continue;
      fail("training diverged: the loss is not finite; expected a rate below ", options_.rate);
    }
  }

  torch::Tensor x_;
  torch::Tensor y_;
  const std::vector<FitRows>& rows_;
  StackLoss loss_;
  const EnsembleFitOptions& options_;
  StackShape shape_;
  Random random_;
  MemberStack stack_;
  StackAdam adam_;
  torch::Tensor best_;             // [all networks, P]
  std::vector<double> best_loss_;  // of all networks
  std::vector<FitCurve> curves_;
  std::vector<int64_t> active_;  // networks in the stack, in its order
  std::vector<Random> orders_;   // of all networks
  std::optional<DropoutMasks> masks_;
  HoldoutBlock holdout_;
  int64_t batch_ = 1;
  int64_t batches_ = 1;
  int64_t steps_ = 0;
  double last_loss_ = std::numeric_limits<double>::quiet_NaN();
  std::chrono::steady_clock::time_point start_;
};

}  // namespace

double one_cycle(double done) {
  constexpr double kRise = 0.25, kStart = 0.04;
  const auto fall = [](double share) { return 0.5 + 0.5 * std::cos(std::numbers::pi * share); };
  if (done < kRise) return kStart + (1 - kStart) * (1 - fall(done / kRise));
  return fall(std::min(1.0, (done - kRise) / (1 - kRise)));
}

EnsembleFit fit_ensemble(const torch::Tensor& x, const torch::Tensor& y,
                         const std::vector<FitRows>& rows, const StackLoss& loss, int64_t outputs,
                         const EnsembleFitOptions& options, const EnsembleProgress& progress) {
  return EnsembleRun(x, y, rows, loss, outputs, options).run(progress);
}

torch::Tensor network_outputs(const EnsembleFit& fit, int64_t network, const torch::Tensor& x,
                              const std::vector<int64_t>& rows) {
  const torch::NoGradGuard no_gradients;
  const MemberStack one(fit.shape, fit.parameters.narrow(0, network, 1).clone().to(x.device()));
  std::vector<torch::Tensor> blocks;
  for (size_t first = 0; first < rows.size(); first += kEvaluated) {
    const size_t last = std::min(first + kEvaluated, rows.size());
    const std::vector<int64_t> block(rows.begin() + static_cast<int64_t>(first),
                                     rows.begin() + static_cast<int64_t>(last));
    const torch::Tensor indices = index_tensor(block).to(x.device()).unsqueeze(0);
    blocks.push_back(one.forward(rows_at(x, indices))[0].to(torch::kCPU));
  }
  return torch::cat(blocks);
}

}  // namespace fcp
