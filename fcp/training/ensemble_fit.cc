#include "fcp/training/ensemble_fit.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <numeric>
#include <optional>
#include <utility>

#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/base/random.h"
#include "fcp/nn/runtime/parallel_alone.h"
#include "fcp/nn/runtime/single_thread.h"
#include "fcp/training/member_stack.h"

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
  torch::Tensor weight;  // [S, n], of the row over the sum of the network's own
};

std::vector<uint64_t> seeds_of(const std::vector<uint64_t>& seeds,
                               const std::vector<int64_t>& networks) {
  std::vector<uint64_t> own;
  for (const int64_t s : networks) own.push_back(seeds[static_cast<size_t>(s)]);
  return own;
}

// Trains some of the networks as one stack. Results go to `fit`, at the places of its networks.
class StackRun {
 public:
  StackRun(const torch::Tensor& x, const torch::Tensor& y, const std::vector<FitRows>& rows,
           const StackLoss& loss, const EnsembleFitOptions& options, const FitPlan& plan,
           std::vector<int64_t> networks, EnsembleFit& fit)
      : x_(x),
        y_(y),
        rows_(rows),
        loss_(loss),
        options_(options),
        plan_(plan),
        fit_(fit),
        stack_(fit.shape, (options.start.defined()
                               ? options.start.index_select(0, index_tensor(networks))
                               : initial_stack(fit.shape, seeds_of(plan.weights, networks)))
                              .to(x.device())),
        adam_(stack_.parameters(), fit.shape.inputs, kScaleFactor),
        best_(stack_.parameters().clone()),
        best_loss_(networks.size(), std::numeric_limits<double>::infinity()),
        networks_(std::move(networks)) {
    active_.resize(networks_.size());
    std::iota(active_.begin(), active_.end(), 0);
    for (const uint64_t seed : seeds_of(plan.orders, networks_)) orders_.emplace_back(seed);
    if (loss_.shares.defined()) {
      loss_.shares = loss_.shares.index_select(0, index_tensor(networks_).to(x.device()));
    }
    const int64_t widest = *std::max_element(options.hidden.begin(), options.hidden.end());
    masks_.emplace(options.dropout, stack_.networks() * plan.batch * widest,
                   plan.masks[static_cast<size_t>(networks_[0])], x.device());
    holdout_ = holdout_block();
    if (options.start.defined()) {
      const torch::Tensor held = holdout_losses().to(torch::kCPU, torch::kDouble);
      best_loss_.assign(held.data_ptr<double>(), held.data_ptr<double>() + held.numel());
    }
  }

  void run(FitReport& report) {
    for (int64_t epoch = 1; epoch <= options_.epochs && !active_.empty(); ++epoch) {
      const torch::Tensor trained = train_epoch(report);
      take_losses(epoch, trained, holdout_losses(), report);
    }
    check_trained();
    fit_.parameters.index_copy_(0, index_tensor(networks_), best_.to(torch::kCPU));
  }

 private:
  HoldoutBlock holdout_block() const {
    int64_t longest = 0;
    for (const int64_t s : active_) {
      longest = std::max<int64_t>(longest, static_cast<int64_t>(rows_of(s).holdout.size()));
    }
    std::vector<int64_t> indices;
    std::vector<float> weights;
    for (const int64_t s : active_) {
      const std::vector<int64_t>& own = rows_of(s).holdout;
      for (size_t i = 0; i < static_cast<size_t>(longest); ++i) {
        indices.push_back(own[std::min(i, own.size() - 1)]);
        weights.push_back(i < own.size() ? 1 / static_cast<float>(own.size()) : 0);
      }
    }
    const int64_t networks = static_cast<int64_t>(active_.size());
    const torch::Tensor rows = index_tensor(indices).view({networks, longest}).to(x_.device());
    torch::Tensor weight =
        torch::tensor(weights, torch::kFloat).view({networks, longest}).to(x_.device());
    if (options_.row_weight.defined()) {
      weight = weight * weight_at(rows);
      weight = weight / weight.sum(1, /*keepdim=*/true);
    }
    return {rows, weight};
  }

  // Of rows [S, n].
  torch::Tensor weight_at(const torch::Tensor& rows) const {
    return options_.row_weight.index_select(0, rows.flatten()).view_as(rows);
  }

  const FitRows& rows_of(int64_t place) const {
    return rows_[static_cast<size_t>(networks_[static_cast<size_t>(place)])];
  }

  // [S, batches · batch]: each network's own rows in an order of their own.
  torch::Tensor shuffled_rows() {
    std::vector<int64_t> indices;
    for (const int64_t s : active_) {
      const std::vector<int64_t>& own = rows_of(s).training;
      const std::vector<size_t> order = orders_[static_cast<size_t>(s)].permutation(own.size());
      for (int64_t i = 0; i < plan_.batches * plan_.batch; ++i) {
        indices.push_back(own[order[static_cast<size_t>(i)]]);
      }
    }
    return index_tensor(indices)
        .view({static_cast<int64_t>(active_.size()), plan_.batches * plan_.batch})
        .to(x_.device());
  }

  // One pass over the rows; the mean loss of each active network, on the device.
  torch::Tensor train_epoch(FitReport& report) {
    const torch::Tensor order = shuffled_rows();
    torch::Tensor total = torch::zeros({stack_.networks()}, x_.options());
    for (int64_t batch = 0; batch < plan_.batches; ++batch) {
      check_interrupted();
      const torch::Tensor rows = order.narrow(1, batch * plan_.batch, plan_.batch);
      const torch::Tensor y = rows_at(y_, rows);
      const torch::Tensor outputs = stack_.forward(rows_at(x_, rows), *masks_);
      torch::Tensor losses = loss_.row_losses(outputs, y), slope = loss_.gradient(outputs, y);
      if (options_.row_weight.defined()) {
        const torch::Tensor weight = weight_at(rows);
        losses = losses * weight;
        slope = slope * weight.unsqueeze(2);
      }
      total += losses.mean(1);
      stack_.backward(slope);
      const double all = static_cast<double>(options_.epochs * plan_.batches);
      const double done = (static_cast<double>(steps_) + 0.5) / all;
      adam_.step(stack_.parameters(), stack_.gradient(), options_.rate * one_cycle(done));
      ++steps_;
      report.advance(stack_.networks());
    }
    return total / static_cast<double>(plan_.batches);
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
  void take_losses(int64_t epoch, const torch::Tensor& trained, const torch::Tensor& held,
                   FitReport& report) {
    const torch::Tensor both = torch::stack({trained, held}).to(torch::kCPU, torch::kDouble);
    std::vector<int64_t> going_on;  // places in the stack
    for (size_t i = 0; i < active_.size(); ++i) {
      const size_t s = static_cast<size_t>(active_[i]);
      const int64_t place = static_cast<int64_t>(i);
      const auto network = static_cast<size_t>(networks_[s]);
      FitCurve& curve = fit_.curves[network];
      curve.training_loss.push_back(both[0][place].item<double>());
      curve.holdout_loss.push_back(both[1][place].item<double>());
      report.set_loss(network, curve.holdout_loss.back());
      if (curve.holdout_loss.back() < best_loss_[s]) {
        best_loss_[s] = curve.holdout_loss.back();
        curve.best_epoch = epoch;
        best_[active_[i]].copy_(stack_.parameters()[place]);
      }
      const bool finite = std::isfinite(curve.training_loss.back());
      if (finite && epoch - curve.best_epoch < options_.patience) going_on.push_back(place);
    }
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
  const std::vector<FitRows>& rows_;  // of all networks, like plan_ and fit_
  StackLoss loss_;
  const EnsembleFitOptions& options_;
  const FitPlan& plan_;
  EnsembleFit& fit_;
  MemberStack stack_;
  StackAdam adam_;
  torch::Tensor best_;             // [networks of this run, P]
  std::vector<double> best_loss_;  // of these
  std::vector<int64_t> networks_;  // their places among all
  std::vector<int64_t> active_;    // places in networks_ of those in the stack, in its order
  std::vector<Random> orders_;
  std::optional<DropoutMasks> masks_;
  HoldoutBlock holdout_;
  int64_t steps_ = 0;
};

// A network per thread at a time. Inside of them nothing is shared: threads that share a product of
// this size wait for each other longer than they compute, and on a busy machine ten times as long.
void train_side_by_side(int64_t networks, const std::function<void(int64_t)>& train) {
  const auto threads = static_cast<size_t>(std::min<int64_t>(networks, at::get_num_threads()));
  std::atomic<int64_t> next{0};
  parallel_alone(threads, 1, threads, [&](size_t, size_t) {
    try {
      for (int64_t network = next++; network < networks; network = next++) train(network);
    } catch (...) {
      next = networks;  // the others begin no more
      throw;
    }
  });
}

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
  const FitPlan plan(rows, options);
  const StackShape shape{x.size(1), options.hidden, outputs};
  const auto networks = static_cast<int64_t>(rows.size());
  EnsembleFit fit{shape, torch::empty({networks, shape.parameters()}, torch::kFloat),
                  std::vector<FitCurve>(rows.size())};
  FitReport report(rows.size(), options.epochs, plan.batches, progress);
  const auto train = [&](std::vector<int64_t> own) {
    const torch::NoGradGuard no_gradients;
    StackRun(x, y, rows, loss, options, plan, std::move(own), fit).run(report);
  };
  if (x.is_cpu() && networks > 1) {
    train_side_by_side(networks, [&](int64_t network) { train({network}); });
  } else {
    std::vector<int64_t> all(rows.size());
    std::iota(all.begin(), all.end(), 0);
    constexpr double kWorthSharing = 1 << 26;  // multiplications of a step
    const bool short_steps =
        static_cast<double>(plan.batch * fit.parameters.numel()) < kWorthSharing;
    const SingleThread one_thread(short_steps);
    train(std::move(all));
  }
  return fit;
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

FitPlan::FitPlan(const std::vector<FitRows>& rows, const EnsembleFitOptions& options) {
  size_t shortest = rows[0].training.size();
  for (const FitRows& own : rows) shortest = std::min(shortest, own.training.size());
  batch = std::min<int64_t>(options.batch, static_cast<int64_t>(shortest));
  batches = static_cast<int64_t>(shortest) / batch;
  Random random(options.seed);
  for (std::vector<uint64_t>* seeds : {&weights, &orders, &masks}) {
    for (size_t s = 0; s < rows.size(); ++s) seeds->push_back(random.bits());
  }
}

FitReport::FitReport(size_t networks, int64_t epochs, int64_t batches,
                     const EnsembleProgress& progress)
    : progress_(progress),
      epochs_(epochs),
      steps_(static_cast<int64_t>(networks) * epochs * batches),
      losses_(networks, std::numeric_limits<double>::quiet_NaN()),
      start_(std::chrono::steady_clock::now()) {}

void FitReport::advance(int64_t networks) {
  const std::lock_guard lock(mutex_);
  done_ += networks;
  if (!progress_) return;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  const double each = elapsed.count() / static_cast<double>(done_);
  progress_({1 + (done_ - 1) * epochs_ / steps_, epochs_, done_, steps_, mean_loss(),
             each * static_cast<double>(steps_ - done_)});
}

void FitReport::set_loss(size_t network, double loss) {
  const std::lock_guard lock(mutex_);
  losses_[network] = loss;
}

double FitReport::mean_loss() const {
  double sum = 0, count = 0;
  for (const double loss : losses_) {
    if (std::isnan(loss)) continue;
    sum += loss;
    ++count;
  }
  return sum / count;  // NaN before the first epoch is over
}

}  // namespace fcp
