// The hidden units p = W₁v + b₁ of a Linear–ReLU–Linear head for many rows, laid out for loops that
// take sixteen rows at a time: in blocks of sixteen, the numbers of a unit for all rows of the
// block, unit after unit. What fills up the last block matters to nobody. Tested by
// tests/bounds/relu_range_test.cc.
#pragma once

#include <cstddef>

#include "fcp/nn/kernels/relu_mlp/relu_rows.h"

namespace fcp {

class HiddenBlocks {
 public:
  HiddenBlocks(const ReluRows& head, size_t rows);

  // p of the rows from `first` on, which begins a block, out of their features.
  void fill(const ReluRows& head, const float* features, size_t first, size_t rows);

  const float* block(size_t first) const { return numbers_.data() + first * units_; }

  static size_t bytes(const ReluRows& head, size_t rows);

 private:
  size_t units_;  // padded
  FloatRows numbers_;
};

}  // namespace fcp
