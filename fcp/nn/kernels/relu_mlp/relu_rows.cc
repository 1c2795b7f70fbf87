#include "fcp/nn/kernels/relu_mlp/relu_rows.h"

#include "fcp/base/lanes.h"

namespace fcp {

ReluRows make_relu_rows(const ReluHead& head) {
  ReluRows rows;
  rows.features = static_cast<size_t>(head.w1.size(1));
  rows.hidden = static_cast<size_t>(head.w1.size(0));
  rows.outputs = static_cast<size_t>(head.w2.size(0));
  rows.feature_width = padded(rows.features);
  rows.hidden_width = padded(rows.hidden);
  rows.first = make_affine_rows(head.w1, head.b1);
  rows.w1 = padded_rows(head.w1, rows.feature_width);
  rows.w2 = padded_rows(head.w2, rows.hidden_width);
  rows.b2 = padded_rows(head.b2.unsqueeze(0), rows.outputs);
  return rows;
}

void hidden_rows(const ReluRows& head, const float* features, size_t rows, float* hidden) {
  affine_rows(head.first, features, head.features, rows, Activation::kNone, hidden);
}

}  // namespace fcp
