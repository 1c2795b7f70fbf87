// A Linear–ReLU–Linear head (relu_head.h) laid out for loops over single rows, and the first half
// of its work, W₁v + b₁. Features behind a ReLU are zero about half of the time, and zeros are
// passed over, which makes this as fast as a matrix product that does not. Plain numbers, no
// tensors. Tested by tests/network/relu_rows_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fcp/network/relu_head.h"

namespace fcp {

// Rows are padded with zeros to a multiple of kLanes (fcp/base/lanes.h).
struct ReluRows {
  size_t features = 0, hidden = 0, outputs = 0;  // D, H, K
  size_t feature_width = 0, hidden_width = 0;    // D and H padded
  std::vector<float> w1;                         // H rows of the feature width
  std::vector<float> w1_columns;                 // D rows of the hidden width: W₁ transposed
  std::vector<float> b1;                         // one row of the hidden width
  std::vector<float> w2;                         // K rows of the hidden width
  std::vector<float> b2;                         // K
};

ReluRows make_relu_rows(const ReluHead& head);

// The rows of a matrix, each padded with zeros to `width`.
std::vector<float> padded_rows(const torch::Tensor& matrix, size_t width);

// W₁v + b₁ of `rows` rows of D features, as rows of the hidden width.
void hidden_rows(const ReluRows& head, const float* features, size_t rows, float* hidden);

}  // namespace fcp
