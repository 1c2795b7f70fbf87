#include "fcp/nn/kernels/relu_mlp/affine_rows.h"

#include <algorithm>
#include <limits>

#include "fcp/base/lanes.h"

namespace fcp {
namespace {

constexpr float kEverything = std::numeric_limits<float>::infinity();

struct AffineWork {
  const AffineRows& layer;
  const float* in;
  size_t stride;
  size_t rows;
  Activation activation;
  float* out;
};

// Rows `row` … `row + kRows − 1`, and kParts vectors of outputs from `first` on. The last row
// stands for those behind it: compilers may round differently in tiles of other sizes, and a row
// must not depend on how many come with it.
template <typename Floats, size_t kRows, size_t kParts>
FCP_KERNEL void make_tile(const AffineWork& work, size_t row, size_t first) {
  using Vector = typename Floats::Type;
  constexpr size_t kStep = kFloatsIn<Floats>;
  const size_t inputs = work.layer.inputs, width = work.layer.width;
  const float* bias = work.layer.bias.data() + first;
  const float* weights = work.layer.columns.data() + first;
  const float* in[kRows];
  float* out[kRows];
  Vector sum[kRows][kParts];
  for (size_t i = 0; i < kRows; ++i) {
    const size_t own = std::min(row + i, work.rows - 1);
    in[i] = work.in + own * work.stride;
    out[i] = work.out + own * width + first;
    for (size_t part = 0; part < kParts; ++part)
      sum[i][part] = *floats<Floats>(bias + part * kStep);
  }
  for (size_t k = 0; k < inputs; ++k, weights += width) {
    for (size_t i = 0; i < kRows; ++i) {
      const float input = in[i][k];
      for (size_t part = 0; part < kParts; ++part) {
        sum[i][part] += input * *floats<Floats>(weights + part * kStep);
      }
    }
  }
  const float least = work.activation == Activation::kRelu ? 0.0f : -kEverything;
  for (size_t i = 0; i < kRows; ++i) {
    for (size_t part = 0; part < kParts; ++part) {
      const Vector& value = sum[i][part];
      *floats<Floats>(out[i] + part * kStep) = value < least ? Vector{} + least : value;
    }
  }
}

// Tiles as large as the registers hold.
template <typename Floats, size_t kRows, size_t kParts>
FCP_KERNEL void make_affine(const AffineWork& work) {
  constexpr size_t kWide = kParts * kFloatsIn<Floats>;
  for (size_t row = 0; row < work.rows; row += kRows) {
    size_t first = 0;
    for (; first + kWide <= work.layer.width; first += kWide) {
      make_tile<Floats, kRows, kParts>(work, row, first);
    }
    for (; first < work.layer.width; first += kFloatsIn<Floats>) {
      make_tile<Floats, kRows, 1>(work, row, first);
    }
  }
}

FCP_AVX512 void make_affine_avx512(const AffineWork& work) { make_affine<Floats16, 6, 4>(work); }
FCP_AVX2 void make_affine_avx2(const AffineWork& work) { make_affine<Floats8, 3, 4>(work); }
void make_affine_plain(const AffineWork& work) { make_affine<Floats4, 3, 4>(work); }

}  // namespace

FloatRows padded_rows(const torch::Tensor& matrix, size_t width) {
  const torch::Tensor plain = matrix.to(torch::kCPU, torch::kFloat).contiguous();
  const auto rows = static_cast<size_t>(plain.size(0)),
             columns = static_cast<size_t>(plain.size(1));
  FloatRows padded(rows * width);
  const float* from = plain.data_ptr<float>();
  for (size_t row = 0; row < rows; ++row) {
    std::copy_n(from + row * columns, columns,
                padded.begin() + static_cast<std::ptrdiff_t>(row * width));
  }
  return padded;
}

AffineRows make_affine_rows(const torch::Tensor& weight, const torch::Tensor& bias) {
  AffineRows layer;
  layer.inputs = static_cast<size_t>(weight.size(1));
  layer.outputs = static_cast<size_t>(weight.size(0));
  layer.width = padded(layer.outputs);
  layer.columns = padded_rows(weight.t(), layer.width);
  layer.bias = padded_rows(bias.unsqueeze(0), layer.width);
  return layer;
}

void affine_rows(const AffineRows& layer, const float* in, size_t stride, size_t rows,
                 Activation activation, float* out) {
  const AffineWork work{layer, in, stride, rows, activation, out};
  const int width = simd_width();
  if (width == 512) return make_affine_avx512(work);
  if (width == 256) return make_affine_avx2(work);
  make_affine_plain(work);
}

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

namespace {

// Sixteen rows of the hidden width become a block.
FCP_AVX512 void make_block_avx512(const ReluRows& head, const float* rows, float* block) {
  for (size_t i = 0; i < head.hidden_width; i += kLanes) {
    transpose_lanes(rows + i, head.hidden_width, block + i * kLanes);
  }
}

void make_block_plain(const ReluRows& head, const float* rows, float* block) {
  for (size_t i = 0; i < head.hidden_width; ++i) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      block[i * kLanes + lane] = rows[lane * head.hidden_width + i];
    }
  }
}

}  // namespace

HiddenBlocks::HiddenBlocks(const ReluRows& head, size_t rows)
    : units_(head.hidden_width), numbers_(padded(rows) * head.hidden_width) {}

size_t HiddenBlocks::bytes(const ReluRows& head, size_t rows) {
  return padded(rows) * head.hidden_width * sizeof(float);
}

void HiddenBlocks::fill(const ReluRows& head, const float* features, size_t first, size_t rows) {
  constexpr size_t kAtOnce = 3 * kLanes;
  const size_t width = head.hidden_width;
  FloatRows plain(std::min(padded(rows), kAtOnce) * width);
  for (size_t done = 0; done < rows; done += kAtOnce) {
    const size_t count = std::min(kAtOnce, rows - done);
    hidden_rows(head, features + done * head.features, count, plain.data());
    for (size_t row = 0; row < count; row += kLanes) {
      const auto make_block = simd_width() == 512 ? make_block_avx512 : make_block_plain;
      make_block(head, plain.data() + row * width, numbers_.data() + (first + done + row) * units_);
    }
  }
}

}  // namespace fcp
