// An affine layer on rows of plain numbers, y = Wx + b, with or without a ReLU behind it: for the
// small layers of perceptrons, whose weights stay in the first caches. A tile of six rows by
// sixty-four outputs is summed in registers, input by input; every row is computed alike, whatever
// rows stand around it. Cost: 2 D H operations per row, at nearly the speed of the processor's
// multipliers; a library's matrix product reaches that for larger layers only.
// Tested by tests/nn/kernels/relu_mlp/affine_rows_test.cc.
#pragma once

#include <cstddef>

#include <torch/types.h>

#include "fcp/base/lanes.h"
#include "fcp/nn/kernels/relu_mlp/relu_head.h"

namespace fcp {

struct AffineRows {
  size_t inputs = 0, outputs = 0;
  size_t width = 0;   // outputs, padded to a multiple of kLanes (fcp/base/lanes.h)
  FloatRows columns;  // W transposed: a row of `width` for each input, padded with zeros
  FloatRows bias;     // of `width`
};

// `weight` is [outputs, inputs], `bias` [outputs].
AffineRows make_affine_rows(const torch::Tensor& weight, const torch::Tensor& bias);

enum class Activation { kNone, kRelu };

// `rows` rows that begin every `stride` numbers become as many of `width` numbers.
void affine_rows(const AffineRows& layer, const float* in, size_t stride, size_t rows,
                 Activation activation, float* out);

// The rows of a matrix, each padded with zeros to `width`.
FloatRows padded_rows(const torch::Tensor& matrix, size_t width);

// A Linear–ReLU–Linear head (relu_head.h) laid out for loops over single rows, and the first half
// of its work, W₁v + b₁. Plain numbers, no tensors. Tested by
// tests/nn/kernels/relu_mlp/affine_rows_test.cc.

// Rows are padded with zeros to a multiple of kLanes (fcp/base/lanes.h).
struct ReluRows {
  size_t features = 0, hidden = 0, outputs = 0;  // D, H, K
  size_t feature_width = 0, hidden_width = 0;    // D and H padded
  AffineRows first;                              // W₁ and b₁
  FloatRows w1;                                  // H rows of the feature width
  FloatRows w2;                                  // K rows of the hidden width
  FloatRows b2;                                  // K
};

ReluRows make_relu_rows(const ReluHead& head);

// W₁v + b₁ of `rows` rows of D features, as rows of the hidden width.
void hidden_rows(const ReluRows& head, const float* features, size_t rows, float* hidden);

// The hidden units p = W₁v + b₁ of a Linear–ReLU–Linear head for many rows, laid out for loops that
// take sixteen rows at a time: in blocks of sixteen, the numbers of a unit for all rows of the
// block, unit after unit. What fills up the last block matters to nobody. Tested by
// tests/bounds/relu_range_test.cc.

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
