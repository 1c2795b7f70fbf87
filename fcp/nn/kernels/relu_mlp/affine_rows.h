// An affine layer on rows of plain numbers, y = Wx + b, with or without a ReLU behind it: for the
// small layers of perceptrons, whose weights stay in the first caches. A tile of six rows by
// sixty-four outputs is summed in registers, input by input; every row is computed alike, whatever
// rows stand around it. Cost: 2 D H operations per row, at nearly the speed of the processor's
// multipliers; a library's matrix product reaches that for larger layers only.
// Tested by tests/nn/kernels/relu_mlp/relu_rows_test.cc.
#pragma once

#include <cstddef>

#include <torch/types.h>

#include "fcp/base/lanes.h"

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

}  // namespace fcp
