#include "fcp/nn/kernels/cpu/row_functions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/utils.h>

#include "fcp/base/lanes.h"
#include "fcp/base/parallel.h"
#include "fcp/nn/kernels/cpu/gradient_of.h"
#include "fcp/nn/kernels/cpu/row_product.h"

namespace fcp {
namespace {

constexpr size_t kThreadNumbers = size_t{1} << 16;  // below, a thread costs more than it does

// Rows of `width` numbers from one place to another; `scale` and `shift` may be null.
struct RowWork {
  const float* in;
  float* out;
  size_t rows, width;
  const float* scale = nullptr;
  const float* shift = nullptr;
  float epsilon = 0;
  float* mean = nullptr;
  float* inverse = nullptr;
};

template <typename Floats>
FCP_KERNEL float sum_of_floats(const typename Floats::Type& v) {
  float parts[kFloatsIn<Floats>];
  *floats<Floats>(parts) = v;
  for (size_t half = kFloatsIn<Floats> / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) parts[i] += parts[i + half];
  }
  return parts[0];
}

// One row of all numbers.
template <typename Floats>
FCP_KERNEL void erf_row(const RowWork& work) {
  constexpr size_t kStep = kFloatsIn<Floats>;
  for (size_t i = 0; i < work.width; i += kStep) {
    typename Floats::Type x;
    load_floats<Floats>(work.in + i, work.width - i, 0, x);
    erf_floats<Floats>(x);
    store_floats<Floats>(x, work.width - i, work.out + i);
  }
}

template <typename Floats>
FCP_KERNEL void softmax_row(const float* in, float* out, size_t width) {
  typedef typename Floats::Type Vector;
  constexpr size_t kStep = kFloatsIn<Floats>;
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  Vector largest = Vector{} + kNone, sum = {}, x;
  for (size_t i = 0; i < width; i += kStep) {
    load_floats<Floats>(in + i, width - i, kNone, x);
    largest = x > largest ? x : largest;
  }
  float most = kNone;
  for (size_t i = 0; i < kStep; ++i) most = largest[i] > most ? largest[i] : most;
  for (size_t i = 0; i < width; i += kStep) {
    load_floats<Floats>(in + i, width - i, kNone, x);
    x -= most;
    exp_floats<Floats>(x);
    if (width - i < kStep) {
      for (size_t j = width - i; j < kStep; ++j) x[j] = 0;
    }
    sum += x;
    store_floats<Floats>(x, width - i, out + i);
  }
  const float total = sum_of_floats<Floats>(sum);
  for (size_t i = 0; i < width; ++i) out[i] /= total;
}

// Short rows whose last vector is not full go through a copy that has room for all of it.
template <typename Floats>
FCP_KERNEL void softmax_all(const RowWork& work) {
  constexpr size_t kShort = 64, kStep = kFloatsIn<Floats>;
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  const bool copies = work.width <= kShort && work.width % kStep != 0;
  const size_t whole = (work.width + kStep - 1) / kStep * kStep;
  float copy[kShort];
  std::fill(copy, copy + kShort, kNone);
  for (size_t row = 0; row < work.rows; ++row) {
    const float* in = work.in + row * work.width;
    float* out = work.out + row * work.width;
    if (!copies) {
      softmax_row<Floats>(in, out, work.width);
      continue;
    }
    for (size_t i = 0; i < work.width; ++i) copy[i] = in[i];
    for (size_t i = work.width; i < whole; ++i) copy[i] = kNone;
    softmax_row<Floats>(copy, copy, whole);
    for (size_t i = 0; i < work.width; ++i) out[i] = copy[i];
  }
}

template <typename Floats>
FCP_KERNEL void norm_row(const RowWork& work, size_t row) {
  typedef typename Floats::Type Vector;
  constexpr size_t kStep = kFloatsIn<Floats>;
  const float* in = work.in + row * work.width;
  float* out = work.out + row * work.width;
  const auto count = static_cast<float>(work.width);
  Vector sum = {}, squares = {}, x;
  for (size_t i = 0; i < work.width; i += kStep) {
    load_floats<Floats>(in + i, work.width - i, 0, x);
    sum += x;
  }
  const float mean = sum_of_floats<Floats>(sum) / count;
  for (size_t i = 0; i < work.width; i += kStep) {
    load_floats<Floats>(in + i, work.width - i, mean, x);
    x -= mean;
    squares += x * x;
  }
  const float inverse = 1.0f / std::sqrt(sum_of_floats<Floats>(squares) / count + work.epsilon);
  for (size_t i = 0; i < work.width; i += kStep) {
    Vector scale, shift;
    load_floats<Floats>(in + i, work.width - i, 0, x);
    x = (x - mean) * inverse;
    if (work.scale != nullptr) {
      load_floats<Floats>(work.scale + i, work.width - i, 0, scale);
      x *= scale;
    }
    if (work.shift != nullptr) {
      load_floats<Floats>(work.shift + i, work.width - i, 0, shift);
      x += shift;
    }
    store_floats<Floats>(x, work.width - i, out + i);
  }
  work.mean[row] = mean;
  work.inverse[row] = inverse;
}

template <typename Floats>
FCP_KERNEL void norm_all(const RowWork& work) {
  for (size_t row = 0; row < work.rows; ++row) norm_row<Floats>(work, row);
}

FCP_AVX512 void erf_avx512(const RowWork& work) { erf_row<Floats16>(work); }
FCP_AVX2 void erf_avx2(const RowWork& work) { erf_row<Floats8>(work); }
void erf_plain(const RowWork& work) { erf_row<Floats4>(work); }
FCP_AVX512 void softmax_avx512(const RowWork& work) { softmax_all<Floats16>(work); }
FCP_AVX2 void softmax_avx2(const RowWork& work) { softmax_all<Floats8>(work); }
void softmax_plain(const RowWork& work) { softmax_all<Floats4>(work); }
FCP_AVX512 void norm_avx512(const RowWork& work) { norm_all<Floats16>(work); }
FCP_AVX2 void norm_avx2(const RowWork& work) { norm_all<Floats8>(work); }
void norm_plain(const RowWork& work) { norm_all<Floats4>(work); }

using RowKernel = void (*)(const RowWork&);
RowKernel kernel_of(RowKernel avx512, RowKernel avx2, RowKernel plain) {
  const int width = simd_width();
  return width == 512 ? avx512 : width == 256 ? avx2 : plain;
}

// Whole rows to each thread.
void share_rows(const RowWork& work, RowKernel kernel) {
  const size_t least = kThreadNumbers / (work.width + 1) + 1;
  parallel_rows(work.rows, least, static_cast<size_t>(at::get_num_threads()),
                [&](size_t first, size_t last) {
                  RowWork part = work;
                  part.in += first * work.width;
                  part.out += first * work.width;
                  part.rows = last - first;
                  if (work.mean != nullptr) part.mean += first;
                  if (work.inverse != nullptr) part.inverse += first;
                  kernel(part);
                });
}

RowWork work_on(const torch::Tensor& x, torch::Tensor& y, size_t width) {
  return {x.data_ptr<float>(), y.data_ptr<float>(),
          width == 0 ? 0 : static_cast<size_t>(x.numel()) / width, width};
}

torch::Tensor plain_erf(const torch::Tensor& x) {
  const torch::Tensor from = x.detach().contiguous();
  torch::Tensor y = torch::empty_like(from);
  const RowKernel kernel = kernel_of(erf_avx512, erf_avx2, erf_plain);
  const RowWork all = work_on(from, y, 1);
  parallel_rows(all.rows, kThreadNumbers, static_cast<size_t>(at::get_num_threads()),
                [&](size_t first, size_t last) {
                  kernel({all.in + first, all.out + first, 1, last - first});
                });
  return y;
}

}  // namespace

bool has_row_functions(const torch::Tensor& x) {
  return x.is_cpu() && x.scalar_type() == torch::kFloat;
}

torch::Tensor erf_of(const torch::Tensor& x) {
  if (!has_row_functions(x)) {
    return each_alike([](const torch::Tensor& t) { return torch::erf(t); }, x);
  }
  return wants_gradient(x) ? with_gradient_of(torch::erf(x), plain_erf(x)) : plain_erf(x);
}

torch::Tensor softmax_rows(const torch::Tensor& x) {
  const torch::Tensor from = x.detach().contiguous();
  torch::Tensor y = torch::empty_like(from);
  share_rows(work_on(from, y, static_cast<size_t>(x.size(-1))),
             kernel_of(softmax_avx512, softmax_avx2, softmax_plain));
  return wants_gradient(x) ? with_gradient_of(torch::softmax(x, -1), y) : y;
}

NormedRows norm_rows(const torch::Tensor& x, int64_t width, const torch::Tensor& weight,
                     const torch::Tensor& bias, double epsilon) {
  const torch::Tensor from = x.detach().contiguous();
  const auto flat = [](const torch::Tensor& t) {
    return t.defined() ? t.detach().contiguous() : torch::Tensor();
  };
  const torch::Tensor scale = flat(weight), shift = flat(bias);
  NormedRows rows;
  rows.y = torch::empty_like(from);
  rows.mean = torch::empty({x.numel() / width}, x.options());
  rows.inverse = torch::empty_like(rows.mean);
  RowWork work = work_on(from, rows.y, static_cast<size_t>(width));
  work.scale = scale.defined() ? scale.data_ptr<float>() : nullptr;
  work.shift = shift.defined() ? shift.data_ptr<float>() : nullptr;
  work.epsilon = static_cast<float>(epsilon);
  work.mean = rows.mean.data_ptr<float>();
  work.inverse = rows.inverse.data_ptr<float>();
  share_rows(work, kernel_of(norm_avx512, norm_avx2, norm_plain));
  return rows;
}

}  // namespace fcp
