#include "fcp/monitoring/adaptive_level.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fcp/base/error.h"

namespace fcp {
namespace {

constexpr size_t kStretch = 500;  // I, the rows over which experts are compared

double pinball(double target, double p_value, double level) {
  return target * (p_value - level) - std::min(0.0, p_value - level);
}

std::vector<double> steps_for(const AdaptOptions& options) {
  if (options.method == "none") return {0};
  if (options.method == "dtaci") return {0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128};
  if (options.method != "aci") {
    fail_option("adapt", "found '", options.method, "', expected aci, dtaci or none");
  }
  if (!(options.step > 0 && options.step < 1)) {
    fail_option("step", "found ", options.step, ", expected a number in (0, 1)");
  }
  return {options.step};
}

}  // namespace

std::string adapting_text(const AdaptOptions& options) {
  return options.method == "aci" ? concat("aci ", options.step) : options.method;
}

AdaptiveLevel::AdaptiveLevel(const Level& target, const AdaptOptions& options)
    : target_(target.value()),
      steps_(steps_for(options)),
      levels_(steps_.size(), target_),
      weights_(steps_.size(), 1.0 / static_cast<double>(steps_.size())) {}

double AdaptiveLevel::level() const {
  const double mean = std::inner_product(weights_.begin(), weights_.end(), levels_.begin(), 0.0);
  return std::round(mean * 1e12) / 1e12;
}

void AdaptiveLevel::see(double p_value) {
  if (steps_.size() > 1) reweigh(p_value);
  for (size_t i = 0; i < steps_.size(); ++i) {
    levels_[i] += steps_[i] * (target_ - (p_value <= levels_[i] ? 1 : 0));
  }
}

std::vector<double> AdaptiveLevel::state() const {
  std::vector<double> state = levels_;
  state.insert(state.end(), weights_.begin(), weights_.end());
  state.insert(state.end(), losses_.begin(), losses_.end());
  return state;
}

void AdaptiveLevel::restore(const std::vector<double>& state) {
  const size_t experts = steps_.size();
  const bool fits =
      state.size() >= 2 * experts && state.size() <= 2 * experts + kStretch &&
      std::all_of(state.begin(), state.end(), [](double x) { return std::isfinite(x); });
  if (!fits) fail("found ", state.size(), " numbers, expected the state of an adaptive level");
  const auto weights = state.begin() + static_cast<std::ptrdiff_t>(experts);
  const auto losses = weights + static_cast<std::ptrdiff_t>(experts);
  levels_.assign(state.begin(), weights);
  weights_.assign(weights, losses);
  losses_.assign(losses, state.end());
}

void AdaptiveLevel::reweigh(double p_value) {
  const auto experts = static_cast<double>(steps_.size());
  double squares = 0;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const double loss = pinball(target_, p_value, levels_[i]);
    squares += weights_[i] * loss * loss;
  }
  losses_.push_back(squares);
  if (losses_.size() > kStretch) losses_.pop_front();
  loss_sum_ = std::accumulate(losses_.begin(), losses_.end(), 0.0);
  const double rate =
      loss_sum_ > 0
          ? std::sqrt((std::log(2 * experts * static_cast<double>(kStretch)) + 1) / loss_sum_)
          : 0;
  for (size_t i = 0; i < steps_.size(); ++i) {
    weights_[i] *= std::exp(-rate * pinball(target_, p_value, levels_[i]));
  }
  const double sum = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  constexpr double kShared = 1.0 / (2 * kStretch);  // σ
  for (double& weight : weights_) weight = (1 - kShared) * weight / sum + kShared / experts;
}

}  // namespace fcp
