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

}  // namespace fcp
