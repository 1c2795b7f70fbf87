// How much memory walks over a head take, so that they can be cut into pieces that fit a budget.
//
// One row of features is run through the head, and the numbers that the walks hold at each step
// are counted: ranges have two ends, linear bounds two sets of coefficients for each bounded
// number, and the operators need temporaries beside them, which are counted by kind of rule. The
// counts are upper estimates; the weights of the head, and what is given to and taken from a walk,
// are not in them.
// Tested by tests/bounds/memory_test.cc and memory_slow_test.cc.
#pragma once

#include <cstddef>

#include "fcp/bounds/bounds.h"
#include "fcp/bounds/walk.h"

namespace fcp {

// Bytes for each row.
struct WalkCost {
  double forward = 0;  // at most at once, while ranges go forwards
  double kept = 0;     // by linear bounds: the ranges of all tensors, and the lines
  double number = 0;   // at most at once, for each bounded number in its backward pass

  double least(bool linear) const { return linear ? kept + number : forward; }
};

// `rows` [B, …]: as many rows as the head wants to see at once, with any features.
WalkCost walk_cost(const PreparedHead& head, BoundMethod method, const torch::Tensor& rows);

// How many rows to walk at once, with a quarter of the memory left for what a caller keeps between
// walks. An Error where not even one fits.
int64_t affordable_rows(const WalkCost& cost, bool linear, size_t memory);

// How many numbers of each of these rows to walk back at once; and at most so many that what a walk
// on the CPU goes over again and again stays in a processor's cache.
int64_t cached_numbers(const WalkCost& cost, int64_t rows);
int64_t affordable_numbers(const WalkCost& cost, int64_t rows, size_t memory);

}  // namespace fcp
