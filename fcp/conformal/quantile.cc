#include "fcp/conformal/quantile.h"

#include <algorithm>
#include <cmath>

#include "fcp/base/error.h"
#include "fcp/base/special_numbers.h"
#include "fcp/conformal/score_order.h"

namespace fcp {
namespace {

WeightSum checked_total(std::span<const double> weights, double test_weight) {
  const auto legal = [](double weight) { return weight >= 0 && weight < kInfinity; };
  if (!legal(test_weight)) {
    fail("weight of the test point is ", test_weight, "; expected a finite number, not negative");
  }
  WeightSum total = test_weight;
  for (size_t row = 0; row < weights.size(); ++row) {
    if (!legal(weights[row])) {
      fail("weight of row ", row, " is ", weights[row], "; expected a finite number, not negative");
    }
    total += weights[row];
  }
  return total;
}

void check_sizes(size_t scores, size_t weights) {
  if (scores != weights) fail("found ", weights, " weights for ", scores, " scores");
}

}  // namespace

void check_scores(std::span<const double> scores) {
  if (!any_nan(scores.data(), scores.size())) return;
  for (size_t row = 0; row < scores.size(); ++row) {
    if (std::isnan(scores[row])) fail("score of row ", row, " is NaN; expected a number");
  }
}

double conformal_quantile(std::span<const double> scores, const Level& level) {
  const size_t rank = conformal_rank(level, scores.size());
  const double kth = rank > scores.size() ? kInfinity : kth_smallest(scores, rank);
  if (!std::isfinite(kth)) check_scores(scores);  // NaN, or not looked at yet
  return kth;
}

double conformal_quantile_sorted(std::span<const double> sorted, const Level& level) {
  const size_t rank = conformal_rank(level, sorted.size());
  return rank > sorted.size() ? kInfinity : sorted[rank - 1];
}

std::vector<double> sorted_scores(std::vector<double> scores) {
  check_scores(scores);
  sort_scores(scores);
  return scores;
}

double weighted_quantile_sorted(std::span<const double> sorted, std::span<const double> weights,
                                double test_weight, const Level& level) {
  check_sizes(sorted.size(), weights.size());
  const WeightSum total = checked_total(weights, test_weight);
  if (total == 0) return kInfinity;
  // Mass reached ≥ (1 − α) total is the same as mass left ≤ α total, so we walk down from the top,
  // where the test point's mass is left, as long as the next row may be left as well.
  const auto may_be_left = [&, alpha = level.value()](WeightSum mass) {
    return weight_share(mass, total) <= alpha;
  };
  WeightSum left = test_weight;
  if (sorted.empty() || !may_be_left(left)) return kInfinity;
  size_t last = sorted.size() - 1;
  while (last > 0 && may_be_left(left + weights[last])) left += weights[last--];
  return sorted[last];  // row 0 cannot be left, because α < 1
}

double FollowingQuantile::of(std::span<const double> scores) {
  const std::optional<double> near = near_last(scores);
  const double now = near ? *near : conformal_quantile(scores, level_);
  window_ = 3 * std::abs(now - last_);
  last_ = now;
  return now;
}

std::optional<double> FollowingQuantile::near_last(std::span<const double> scores) {
  const size_t rank = conformal_rank(level_, scores.size());
  const double low = last_ - window_, high = last_ + window_;
  if (!std::isfinite(low) || !std::isfinite(high)) return std::nullopt;
  size_t below = 0, above = 0;
  for (const double score : scores) {
    below += score < low ? 1 : 0;
    above += score > high ? 1 : 0;
  }
  if (rank <= below || rank > scores.size() - above) return std::nullopt;
  inside_.clear();
  for (const double score : scores) {
    if (score >= low && score <= high) inside_.push_back(score);
  }
  if (below + inside_.size() + above != scores.size()) return std::nullopt;  // one is NaN
  const auto kth = inside_.begin() + static_cast<std::ptrdiff_t>(rank - below - 1);
  std::nth_element(inside_.begin(), kth, inside_.end());
  return *kth;
}

}  // namespace fcp
