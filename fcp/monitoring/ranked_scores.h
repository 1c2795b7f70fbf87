// Scores in order, to which scores come and from which they go: how many lie below a number, and
// which is the k-th. Sorted blocks of at most 1,024: O(n / 512 + log n) for each operation, which
// for a million scores is a few microseconds. Two neighbours hold more than 512 together, so that
// memory is at most 32 bytes per score and a block, whatever comes and goes; usually it is 11.
// Tested by tests/monitoring/ranked_scores_test.cc.
#pragma once

#include <cstddef>
#include <vector>

namespace fcp {

class RankedScores {
 public:
  RankedScores() = default;
  // In any order; ±∞ are legal, a NaN is an Error.
  explicit RankedScores(std::vector<double> scores);

  void insert(double score);
  // One score equal to this; an Error where there is none.
  void erase(double score);

  size_t size() const { return size_; }
  size_t count_below(double score) const;    // #{s < score}
  size_t count_at_most(double score) const;  // #{s ≤ score}
  double kth(size_t k) const;                // from 0, k < size()
  std::vector<double> sorted() const;
  size_t blocks() const { return blocks_.size(); }

 private:
  size_t block_of(double score) const;  // the first whose last score is not below it
  void split(size_t at);
  void join_with_next(size_t at);  // where both are small

  std::vector<std::vector<double>> blocks_;  // none is empty
  size_t size_ = 0;
};

}  // namespace fcp
