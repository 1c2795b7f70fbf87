#include "fcp/conformal/score_order.h"

#include <algorithm>

#include "fcp/conformal/kth_smallest.h"
#include "fcp/conformal/quantile.h"
#include "fcp/conformal/sort_scores.h"

namespace fcp {
namespace {

constexpr size_t kSelections = 3;  // take about as long as sorting does

}  // namespace

ScoreOrder::ScoreOrder(std::vector<double> scores)
    : scores_(std::move(scores)), is_sorted_(std::is_sorted(scores_.begin(), scores_.end())) {
  check_scores(scores_);
}

double ScoreOrder::at(size_t place) const {
  if (is_sorted_.load(std::memory_order_acquire)) return scores_[place];
  const std::lock_guard lock(mutex_);
  for (const auto& [known, score] : found_) {
    if (known == place) return score;
  }
  if (found_.size() == kSelections) sort_held();
  const double score = is_sorted_ ? scores_[place] : kth_smallest(scores_, place + 1);
  if (!is_sorted_) found_.emplace_back(place, score);
  return score;
}

std::span<const double> ScoreOrder::sorted() const {
  if (is_sorted_.load(std::memory_order_acquire)) return scores_;
  const std::lock_guard lock(mutex_);
  sort_held();
  return scores_;
}

void ScoreOrder::sort_held() const {
  if (is_sorted_) return;
  sort_scores(scores_);
  is_sorted_.store(true, std::memory_order_release);
}

}  // namespace fcp
