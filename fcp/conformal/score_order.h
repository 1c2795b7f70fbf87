// Scores of which order statistics are asked for. One or a few are found by selection, in time
// O(n); from the fourth on, or where all are needed, the scores are sorted once, O(n log n) at most
// (sort_scores.h). Scores that come in ascending order are only looked at.
//
// Functions may be called from several threads at a time. Tested by
// tests/conformal/score_order_test.cc.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace fcp {

class ScoreOrder {
 public:
  // A NaN is an Error.
  explicit ScoreOrder(std::vector<double> scores);

  size_t size() const { return scores_.size(); }

  // The score at this place of the ascending order, from 0.
  double at(size_t place) const;

  // All in ascending order.
  std::span<const double> sorted() const;

 private:
  void sort_held() const;

  mutable std::mutex mutex_;  // of everything below until the scores are sorted
  mutable std::vector<double> scores_;
  mutable std::vector<std::pair<size_t, double>> found_;
  mutable std::atomic<bool> is_sorted_;
};

}  // namespace fcp
