// The k-th smallest of many numbers, by one pass over them.
//
// A sample brackets the number wanted: two of its members between which the k-th of all lies almost
// surely. One pass, four numbers at a time, counts what is below the bracket and keeps what is
// inside, a tenth or so, in which the k-th is selected. Where the bracket missed, all
// numbers are looked at as usual; the answer is exact either way. Reference: Floyd and Rivest,
// "Expected time bounds for selection", 1975. Cost: little more than reading the numbers once.
// Tested by tests/conformal/quantile_test.cc.
#pragma once

#include <cstddef>
#include <span>

namespace fcp {

// `rank` counts from 1, and there are at least that many numbers. NaN where one of them is.
double kth_smallest(std::span<const double> numbers, size_t rank);

}  // namespace fcp
