#include "fcp/conformal/following_quantile.h"

#include <algorithm>
#include <cmath>

#include "fcp/conformal/quantile.h"
#include "fcp/conformal/rank.h"

namespace fcp {

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
