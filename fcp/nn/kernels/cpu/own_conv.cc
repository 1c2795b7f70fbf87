#include "fcp/nn/kernels/cpu/own_conv.h"

#include <algorithm>
#include <limits>

#include <ATen/Parallel.h>
#include <torch/utils.h>

#include "fcp/base/lanes.h"
#include "fcp/base/parallel.h"
#include "fcp/nn/kernels/cpu/packed_product.h"

namespace fcp {
namespace {

constexpr double kConvThreadWork = 1
                                   << 21;  // products below which a thread costs more than it does

bool is_plain(const torch::Tensor& x, const torch::Tensor& w) {
  const bool floats = x.scalar_type() == torch::kFloat && w.scalar_type() == torch::kFloat;
  return x.is_cpu() && w.is_cpu() && floats && x.numel() > 0;
}

bool all_are(const std::vector<int64_t>& numbers, int64_t value) {
  return std::all_of(numbers.begin(), numbers.end(), [&](int64_t n) { return n == value; });
}

size_t size_of(const torch::Tensor& x, int64_t axis) { return static_cast<size_t>(x.size(axis)); }

// A plane of one channel and its filter.
struct PlaneShape {
  size_t height, width;          // of the input
  size_t out_height, out_width;  // of the output
  size_t kernel_y, kernel_x, stride_y, stride_x, begin_y, begin_x;

  // Padded rows: as many as the filter touches, each split into stride_x parts of `part` numbers,
  // so that neighbouring outputs read neighbouring numbers; behind each room for whole vectors.
  size_t rows() const { return (out_height - 1) * stride_y + kernel_y; }
  size_t part() const { return padded(out_width) + (kernel_x - 1) / stride_x + 2 * kLanes; }
  size_t numbers() const { return rows() * stride_x * part(); }
};

// What is in `rows` where no number of the input belongs stays there: the padding.
void copy_plane(const PlaneShape& shape, const float* in, float* rows) {
  const size_t part = shape.part(), step = shape.stride_x;
  const size_t room = step * part - std::min(step * part, shape.begin_x);
  const size_t most = std::min(shape.width, room);
  for (size_t y = 0; y < shape.height && y + shape.begin_y < shape.rows(); ++y) {
    float* to = rows + (y + shape.begin_y) * step * part;
    const float* from = in + y * shape.width;
    for (size_t first = 0; first < std::min(step, most); ++first) {
      const size_t at = first + shape.begin_x;  // then every step-th number, side by side
      float* side_by_side = to + at % step * part + at / step;
      for (size_t x = first, i = 0; x < most; x += step, ++i) side_by_side[i] = from[x];
    }
  }
}

// What to do with a plane: a filter, or without weights the largest number of each window.
struct PlaneWork {
  PlaneShape shape;
  const float* rows;
  const size_t* offsets;  // of the window's places from its first
  const float* weights;
  float bias;
  float* out;
};

std::vector<size_t> window_offsets(const PlaneShape& shape) {
  std::vector<size_t> offsets;
  for (size_t y = 0; y < shape.kernel_y; ++y) {
    for (size_t x = 0; x < shape.kernel_x; ++x) {
      const size_t side = x % shape.stride_x, place = x / shape.stride_x;
      offsets.push_back((y * shape.stride_x + side) * shape.part() + place);
    }
  }
  return offsets;
}

// kParts vectors of outputs from `first` on in the row whose window begins at `rows`.
template <typename Floats, size_t kParts, bool kLargest>
FCP_KERNEL void window_places(const PlaneWork& work, const float* rows, float* out, size_t first) {
  typedef typename Floats::Type Vector;
  constexpr size_t kStep = kFloatsIn<Floats>;
  const size_t taps = work.shape.kernel_y * work.shape.kernel_x;
  Vector sum[kParts];
#pragma GCC unroll 4
  for (size_t i = 0; i < kParts; ++i) sum[i] = Vector{} + work.bias;
  for (size_t tap = 0; tap < taps; ++tap) {
    const float* from = rows + work.offsets[tap] + first;
    const float weight = kLargest ? 0 : work.weights[tap];
#pragma GCC unroll 4
    for (size_t i = 0; i < kParts; ++i) {
      const Vector x = *floats<Floats>(from + i * kStep);
      if constexpr (kLargest) {
        sum[i] = x > sum[i] ? x : x == x ? sum[i] : x;  // NaN stays
      } else {
        sum[i] += weight * x;
      }
    }
  }
  const size_t left = work.shape.out_width - first;
#pragma GCC unroll 4
  for (size_t i = 0; i < kParts; ++i) {
    if ((i + 1) * kStep <= left) {
      *floats<Floats>(out + first + i * kStep) = sum[i];
    } else {
      for (size_t j = i * kStep; j < left; ++j) out[first + j] = sum[i][j - i * kStep];
    }
  }
}

template <typename Floats, bool kLargest>
FCP_KERNEL void window_plane(const PlaneWork& work) {
  constexpr size_t kStep = kFloatsIn<Floats>;
  const PlaneShape& shape = work.shape;
  float* out = work.out;
  for (size_t y = 0; y < shape.out_height; ++y, out += shape.out_width) {
    const float* from = work.rows + y * shape.stride_y * shape.stride_x * shape.part();
    size_t x = 0;
    for (; x + 2 * kStep < shape.out_width; x += 4 * kStep) {
      window_places<Floats, 4, kLargest>(work, from, out, x);
    }
    for (; x < shape.out_width; x += kStep) {
      window_places<Floats, 1, kLargest>(work, from, out, x);
    }
  }
}

FCP_AVX512 void filter_avx512(const PlaneWork& work) { window_plane<Floats16, false>(work); }
FCP_AVX2 void filter_avx2(const PlaneWork& work) { window_plane<Floats8, false>(work); }
void filter_plain(const PlaneWork& work) { window_plane<Floats4, false>(work); }
// Of sixteen, g++ 12 would take the choice apart into single numbers.
FCP_AVX2 void largest_avx2(const PlaneWork& work) { window_plane<Floats8, true>(work); }
void largest_plain(const PlaneWork& work) { window_plane<Floats4, true>(work); }

// All planes of x [N, C, H, W]; weights and bias, one filter and number per channel, may be null.
torch::Tensor walk_planes(const torch::Tensor& x, const PlaneShape& shape, const float* weights,
                          const float* bias) {
  const torch::Tensor in = x.contiguous();
  torch::Tensor out = torch::empty({x.size(0), x.size(1), static_cast<int64_t>(shape.out_height),
                                    static_cast<int64_t>(shape.out_width)},
                                   x.options());
  if (out.numel() == 0) return out;
  const bool largest = weights == nullptr;
  const float start = largest ? -std::numeric_limits<float>::infinity() : 0.0f;
  const size_t channels = size_of(x, 1), planes = channels * size_of(x, 0);
  const std::vector<size_t> offsets = window_offsets(shape);
  const size_t taps = offsets.size();
  const size_t out_places = shape.out_height * shape.out_width;
  const float* from = in.data_ptr<float>();
  float* to = out.data_ptr<float>();
  const int width = simd_width();
  const auto filter = width == 512 ? filter_avx512 : width == 256 ? filter_avx2 : filter_plain;
  const auto most = width >= 256 ? largest_avx2 : largest_plain;
  const double work = static_cast<double>(out_places) * static_cast<double>(taps);
  parallel_rows(planes, static_cast<size_t>(kConvThreadWork / work) + 1,
                static_cast<size_t>(at::get_num_threads()), [&](size_t first, size_t last) {
                  FloatRows rows(shape.numbers(), start);
                  for (size_t i = first; i < last; ++i) {
                    const size_t channel = i % channels;
                    copy_plane(shape, from + i * shape.height * shape.width, rows.data());
                    const float* own = largest ? nullptr : weights + channel * taps;
                    const float add = bias == nullptr ? start : bias[channel];
                    (largest ? most : filter)(
                        {shape, rows.data(), offsets.data(), own, add, to + i * out_places});
                  }
                });
  return out;
}

PlaneShape plane_shape(const torch::Tensor& x, torch::IntArrayRef kernel, const ConvPlan& plan) {
  const auto number = [](int64_t n) { return static_cast<size_t>(n); };
  return {size_of(x, 2),           size_of(x, 3),           number(plan.places[0]),
          number(plan.places[1]),  number(kernel[0]),       number(kernel[1]),
          number(plan.strides[0]), number(plan.strides[1]), number(plan.begins[0]),
          number(plan.begins[1])};
}

}  // namespace

bool is_pointwise(const torch::Tensor& x, const torch::Tensor& w, const ConvPlan& plan) {
  const bool small = all_are(w.sizes().slice(2).vec(), 1) && all_are(plan.strides, 1);
  const bool unpadded = all_are(plan.begins, 0) && all_are(plan.ends, 0);
  return is_plain(x, w) && small && unpadded && plan.groups == 1;
}

bool has_planes(const torch::Tensor& x, const ConvPlan& plan) {
  const bool near = all_are(plan.dilations, 1) && plan.begins.size() == 2 && plan.begins[0] >= 0 &&
                    plan.begins[1] >= 0;
  return is_plain(x, x) && x.dim() == 4 && near;
}

bool is_depthwise(const torch::Tensor& x, const torch::Tensor& w, const ConvPlan& plan) {
  const bool own_filters = plan.groups == x.size(1) && w.size(0) == plan.groups;
  return is_plain(x, w) && has_planes(x, plan) && own_filters;
}

torch::Tensor pointwise_conv(const torch::Tensor& x, const torch::Tensor& w,
                             const torch::Tensor& bias) {
  const torch::Tensor in = x.contiguous(), weight = w.contiguous();
  const size_t channels = size_of(x, 1), filters = size_of(w, 0);
  std::vector<int64_t> shape = x.sizes().vec();
  shape[1] = w.size(0);
  torch::Tensor out = torch::empty(shape, x.options());
  const size_t places = static_cast<size_t>(x.numel()) / size_of(x, 0) / channels;
  // Places at a time: whole panels of any processor, whose numbers fit the caches.
  constexpr size_t kBlockNumbers = 1 << 14, kPanel = 64;
  const size_t wide = std::max(kPanel, kBlockNumbers / channels / kPanel * kPanel);
  const size_t blocks = (places + wide - 1) / wide;
  const float* from = in.data_ptr<float>();
  float* to = out.data_ptr<float>();
  const MatrixView<const float> matrix = {weight.data_ptr<float>(), filters, channels,
                                          static_cast<ptrdiff_t>(channels), 1};
  const ProductEpilogue<float> add = {bias.defined() ? bias.data_ptr<float>() : nullptr};
  const double work = static_cast<double>(filters * channels) * static_cast<double>(wide);
  parallel_rows(blocks * size_of(x, 0), static_cast<size_t>(kConvThreadWork / work) + 1,
                static_cast<size_t>(at::get_num_threads()), [&](size_t begin, size_t end) {
                  static thread_local PackedPanels<float> panels;
                  const auto step = static_cast<ptrdiff_t>(places);
                  for (size_t i = begin; i < end; ++i) {
                    const size_t row = i / blocks, first = i % blocks * wide;
                    const size_t count = std::min(wide, places - first);
                    panels.pack({from + row * channels * places + first, channels, count, step, 1});
                    multiply_panels<float>(
                        matrix, panels,
                        {to + row * filters * places + first, filters, count, step, 1}, add);
                  }
                });
  return out;
}

torch::Tensor depthwise_conv(const torch::Tensor& x, const torch::Tensor& w,
                             const torch::Tensor& bias, const ConvPlan& plan) {
  const torch::Tensor weight = w.contiguous();
  return walk_planes(x, plane_shape(x, w.sizes().slice(2), plan), weight.data_ptr<float>(),
                     bias.defined() ? bias.data_ptr<float>() : nullptr);
}

torch::Tensor largest_in_windows(const torch::Tensor& x, const std::vector<int64_t>& kernel,
                                 const ConvPlan& plan) {
  return walk_planes(x, plane_shape(x, kernel, plan), nullptr, nullptr);
}

}  // namespace fcp
