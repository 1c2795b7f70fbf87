// Scores of which order statistics are asked for. One or a few are found by selection, in time
// O(n); from the fourth on, or where all are needed, the scores are sorted once, O(n log n) at most
//. Scores that come in ascending order are only looked at.
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

// Sorts doubles in ascending order, several times as fast as std::sort from thousands of them on:
// by the upper 33 bits of their binary form, eleven at a time from the lowest on, which is a count
// and a copy each; runs of numbers that agree in those bits, rare but for equal ones, are sorted
// one by one. What is sorted already is only looked at. Assumes no NaN. Time O(n), O(n log n) where
// long runs agree; memory O(n). More than four million are left to std::sort, which needs no
// memory. Several threads share the work: the scores are parted in place at the median of a sample,
// and so are both halves, until there is a part for each thread.
// Tested by tests/conformal/score_order_test.cc.

void sort_scores(std::vector<double>& scores, size_t threads = 1);

// The k-th smallest of many numbers, by one pass over them.
//
// A sample brackets the number wanted: two of its members between which the k-th of all lies almost
// surely. One pass, four numbers at a time, counts what is below the bracket and keeps what is
// inside, a tenth or so, in which the k-th is selected. Where the bracket missed, all
// numbers are looked at as usual; the answer is exact either way. Reference: Floyd and Rivest,
// "Expected time bounds for selection", 1975. Cost: little more than reading the numbers once.
// Tested by tests/conformal/quantile_test.cc.

// `rank` counts from 1, and there are at least that many numbers. NaN where one of them is.
double kth_smallest(std::span<const double> numbers, size_t rank);

}  // namespace fcp
