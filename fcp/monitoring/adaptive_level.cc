#include "fcp/monitoring/adaptive_level.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/conformal/quantile.h"
#include "fcp/level.h"

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

ScoreWindow::ScoreWindow(std::vector<double> calibration, size_t rows, uint64_t seed)
    : rows_(rows) {
  if (rows == 0) fail("a window of scores needs rows");
  std::vector<double> chosen;
  for (const size_t i : Random(seed).permutation(calibration.size())) {
    if (chosen.size() == rows) break;
    chosen.push_back(calibration[i]);
  }
  order_.assign(chosen.begin(), chosen.end());
  ranked_ = RankedScores(std::move(chosen));
}

double ScoreWindow::p_value(double score) const {
  const size_t at_least = ranked_.size() - ranked_.count_below(score);
  return static_cast<double>(1 + at_least) / static_cast<double>(1 + ranked_.size());
}

double ScoreWindow::radius(double level) const {
  constexpr double kEverything = std::numeric_limits<double>::infinity();
  if (level <= 0) return kEverything;
  if (level >= 1) return -kEverything;
  const size_t rank = conformal_rank(Level(level), ranked_.size());
  return rank > ranked_.size() ? kEverything : ranked_.kth(rank - 1);
}

void ScoreWindow::add(double score) {
  ranked_.insert(score);
  order_.push_back(score);
  if (order_.size() <= rows_) return;
  ranked_.erase(order_.front());
  order_.pop_front();
}

namespace {

constexpr size_t kLargestBlock = 1024;

}  // namespace

RankedScores::RankedScores(std::vector<double> scores) : size_(scores.size()) {
  for (size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i])) fail("score ", i, " (from 0) is NaN, expected a number");
  }
  std::sort(scores.begin(), scores.end());
  constexpr size_t kFirst = kLargestBlock / 2;  // leaves room for what comes
  for (size_t at = 0; at < scores.size(); at += kFirst) {
    const auto first = scores.begin() + static_cast<std::ptrdiff_t>(at);
    const auto count = static_cast<std::ptrdiff_t>(std::min(kFirst, scores.size() - at));
    blocks_.emplace_back(first, first + count);
  }
}

size_t RankedScores::block_of(double score) const {
  const auto found =
      std::lower_bound(blocks_.begin(), blocks_.end(), score,
                       [](const auto& block, double value) { return block.back() < value; });
  return static_cast<size_t>(found - blocks_.begin());
}

void RankedScores::insert(double score) {
  if (std::isnan(score)) fail("a score is NaN, expected a number");
  ++size_;
  if (blocks_.empty()) {
    blocks_.push_back({score});
    return;
  }
  size_t at = std::min(block_of(score), blocks_.size() - 1);
  if (blocks_[at].size() == kLargestBlock) {
    split(at);
    if (blocks_[at].back() < score) ++at;
  }
  std::vector<double>& block = blocks_[at];
  block.insert(std::lower_bound(block.begin(), block.end(), score), score);
}

void RankedScores::split(size_t at) {
  std::vector<double>& block = blocks_[at];
  const auto middle = block.begin() + kLargestBlock / 2;
  std::vector<double> upper(middle, block.end());
  block.erase(middle, block.end());
  blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(at) + 1, std::move(upper));
}

void RankedScores::join_with_next(size_t at) {
  if (at + 1 >= blocks_.size()) return;
  std::vector<double>& block = blocks_[at];
  const std::vector<double>& next = blocks_[at + 1];
  if (block.size() + next.size() > kLargestBlock / 2) return;
  block.insert(block.end(), next.begin(), next.end());
  blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(at) + 1);
}

void RankedScores::erase(double score) {
  const size_t at = block_of(score);
  if (at == blocks_.size()) fail("the score ", score, " is not there to be taken away");
  std::vector<double>& block = blocks_[at];
  const auto found = std::lower_bound(block.begin(), block.end(), score);
  if (*found != score) fail("the score ", score, " is not there to be taken away");
  block.erase(found);
  --size_;
  if (block.empty()) {
    blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(at));
    return;
  }
  join_with_next(at);
  if (at > 0) join_with_next(at - 1);
}

size_t RankedScores::count_below(double score) const {
  const size_t at = block_of(score);
  size_t count = 0;
  for (size_t i = 0; i < at; ++i) count += blocks_[i].size();
  if (at == blocks_.size()) return count;
  const std::vector<double>& block = blocks_[at];
  return count +
         static_cast<size_t>(std::lower_bound(block.begin(), block.end(), score) - block.begin());
}

size_t RankedScores::count_at_most(double score) const {
  size_t count = 0;
  for (const std::vector<double>& block : blocks_) {
    if (block.back() <= score) {
      count += block.size();
      continue;
    }
    return count +
           static_cast<size_t>(std::upper_bound(block.begin(), block.end(), score) - block.begin());
  }
  return count;
}

std::vector<double> RankedScores::sorted() const {
  std::vector<double> all;
  all.reserve(size_);
  for (const std::vector<double>& block : blocks_)
    all.insert(all.end(), block.begin(), block.end());
  return all;
}

double RankedScores::kth(size_t k) const {
  for (const std::vector<double>& block : blocks_) {
    if (k < block.size()) return block[k];
    k -= block.size();
  }
  fail("there are ", size_, " scores, too few for the one asked for");
}

}  // namespace fcp
