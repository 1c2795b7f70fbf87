#include "fcp/network/relu_rows.h"

#include <algorithm>

#include "fcp/base/lanes.h"

namespace fcp {
namespace {

struct HiddenWork {
  const ReluRows& head;
  const float* features;
  size_t rows;
  float* hidden;
  std::vector<uint32_t> index;  // of the features that are not zero, and those
  std::vector<float> value;
};

FCP_KERNEL void make_hidden(HiddenWork& work) {
  const ReluRows& head = work.head;
  for (size_t row = 0; row < work.rows; ++row) {
    const float* v = work.features + row * head.features;
    float* p = work.hidden + row * head.hidden_width;
    size_t count = 0;
    for (size_t d = 0; d < head.features; ++d) {
      work.index[count] = static_cast<uint32_t>(d);
      work.value[count] = v[d];
      count += v[d] != 0 ? 1 : 0;
    }
    std::copy(head.b1.begin(), head.b1.end(), p);
    add_rows(p, head.w1_columns.data(), head.hidden_width,
             {work.index.data(), work.value.data(), count});
  }
}

FCP_AVX512 void make_hidden_avx512(HiddenWork& work) { make_hidden(work); }
FCP_AVX2 void make_hidden_avx2(HiddenWork& work) { make_hidden(work); }
void make_hidden_plain(HiddenWork& work) { make_hidden(work); }

}  // namespace

std::vector<float> padded_rows(const torch::Tensor& matrix, size_t width) {
  const torch::Tensor plain = matrix.to(torch::kCPU, torch::kFloat).contiguous();
  const auto rows = static_cast<size_t>(plain.size(0)),
             columns = static_cast<size_t>(plain.size(1));
  std::vector<float> padded(rows * width);
  const float* from = plain.data_ptr<float>();
  for (size_t row = 0; row < rows; ++row) {
    std::copy_n(from + row * columns, columns,
                padded.begin() + static_cast<std::ptrdiff_t>(row * width));
  }
  return padded;
}

ReluRows make_relu_rows(const ReluHead& head) {
  ReluRows rows;
  rows.features = static_cast<size_t>(head.w1.size(1));
  rows.hidden = static_cast<size_t>(head.w1.size(0));
  rows.outputs = static_cast<size_t>(head.w2.size(0));
  rows.feature_width = padded(rows.features);
  rows.hidden_width = padded(rows.hidden);
  rows.w1 = padded_rows(head.w1, rows.feature_width);
  rows.w1_columns = padded_rows(head.w1.t(), rows.hidden_width);
  rows.b1 = padded_rows(head.b1.unsqueeze(0), rows.hidden_width);
  rows.w2 = padded_rows(head.w2, rows.hidden_width);
  rows.b2 = padded_rows(head.b2.unsqueeze(0), rows.outputs);
  return rows;
}

void hidden_rows(const ReluRows& head, const float* features, size_t rows, float* hidden) {
  HiddenWork work{head,
                  features,
                  rows,
                  hidden,
                  std::vector<uint32_t>(head.features),
                  std::vector<float>(head.features)};
  const int width = simd_width();
  if (width == 512) return make_hidden_avx512(work);
  if (width == 256) return make_hidden_avx2(work);
  make_hidden_plain(work);
}

}  // namespace fcp
