// Sorts doubles in ascending order, several times as fast as std::sort from thousands of them on:
// by the upper 33 bits of their binary form, eleven at a time from the lowest on, which is a count
// and a copy each; runs of numbers that agree in those bits, rare but for equal ones, are sorted
// one by one. What is sorted already is only looked at. Assumes no NaN. Time O(n), O(n log n) where
// long runs agree; memory O(n). More than four million are left to std::sort, which needs no
// memory. Several threads share the work: the scores are parted in place at the median of a sample,
// and so are both halves, until there is a part for each thread.
// Tested by tests/conformal/sort_scores_test.cc.
#pragma once

#include <cstddef>
#include <vector>

namespace fcp {

void sort_scores(std::vector<double>& scores, size_t threads = 1);

}  // namespace fcp
