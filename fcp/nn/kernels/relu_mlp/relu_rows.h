// A Linear–ReLU–Linear head (relu_head.h) laid out for loops over single rows, and the first half
// of its work, W₁v + b₁. Plain numbers, no tensors. Tested by
// tests/nn/kernels/relu_mlp/relu_rows_test.cc.
#pragma once

#include <cstddef>

#include "fcp/nn/kernels/relu_mlp/affine_rows.h"
#include "fcp/nn/kernels/relu_mlp/relu_head.h"

namespace fcp {

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

}  // namespace fcp
