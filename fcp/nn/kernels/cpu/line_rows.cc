#include "fcp/nn/kernels/cpu/line_rows.h"

#include <cmath>
#include <cstddef>
#include <functional>

#include <torch/utils.h>

#include "fcp/base/lanes.h"
#include "fcp/base/parallel.h"
#include "fcp/nn/kernels/cuda/cuda_kernels.h"
#include "fcp/nn/kernels/cuda/line_rows_cuda.h"

namespace fcp {
namespace {

constexpr size_t kSums = 8;                              // side by side
constexpr size_t kThreadCoefficients = size_t{1} << 17;  // below, a thread costs more than it does

// kSums numbers, in as many vectors of kBytes bytes as they take.
template <typename T, size_t kBytes>
struct Eight {
  using Number = T;
  typedef T Type __attribute__((vector_size(kBytes), aligned(sizeof(T)), may_alias));
  static constexpr size_t kStep = kBytes / sizeof(T);
  static constexpr size_t kParts = kSums / kStep;
};

template <typename T>
T folded(const T* parts) {
  return ((parts[0] + parts[4]) + (parts[2] + parts[6])) +
         ((parts[1] + parts[5]) + (parts[3] + parts[7]));
}

template <typename T>
T term_of(T a, T x) {
  return a != 0 ? a * x : T{0};
}

// One row of coefficients and of what it meets.
template <typename T>
struct LineWork {
  const T* a;
  const T *plus_slope, *plus_bias, *minus_slope, *minus_bias;
  T* out;
  size_t width;
};

template <typename Vectors>
FCP_KERNEL typename Vectors::Number line_row(const LineWork<typename Vectors::Number>& work) {
  using T = typename Vectors::Number;
  using Vector = typename Vectors::Type;
  const Vector zero{};
  Vector sums[Vectors::kParts];
  for (size_t part = 0; part < Vectors::kParts; ++part) sums[part] = zero;
  size_t i = 0;
  for (; i + kSums <= work.width; i += kSums) {
    for (size_t part = 0; part < Vectors::kParts; ++part) {
      const size_t at = i + part * Vectors::kStep;
      const Vector a = *reinterpret_cast<const Vector*>(work.a + at);
      const Vector plus_slope = *reinterpret_cast<const Vector*>(work.plus_slope + at);
      const Vector minus_slope = *reinterpret_cast<const Vector*>(work.minus_slope + at);
      const Vector plus_bias = *reinterpret_cast<const Vector*>(work.plus_bias + at);
      const Vector minus_bias = *reinterpret_cast<const Vector*>(work.minus_bias + at);
      *reinterpret_cast<Vector*>(work.out + at) = a * (a > zero ? plus_slope : minus_slope);
      const Vector term = a * (a > zero ? plus_bias : minus_bias);
      sums[part] += a != zero ? term : zero;
    }
  }
  T parts[kSums];
  for (size_t part = 0; part < kSums; ++part) {
    parts[part] = sums[part / Vectors::kStep][part % Vectors::kStep];
  }
  for (; i < work.width; ++i) {
    const T a = work.a[i];
    work.out[i] = a * (a > 0 ? work.plus_slope[i] : work.minus_slope[i]);
    parts[i % kSums] += term_of(a, a > 0 ? work.plus_bias[i] : work.minus_bias[i]);
  }
  return folded(parts);
}

// Σ a·x of one row, Σ |a·scale| and Σ |a·x|.
template <typename T>
struct ReachWork {
  const T *a, *x, *scale;  // scale may be null
  size_t width;
};
template <typename T>
struct ReachSums {
  T value, reach, size;
};

template <typename Vectors>
FCP_KERNEL void reach_row(const ReachWork<typename Vectors::Number>& work,
                          ReachSums<typename Vectors::Number>& result) {
  using T = typename Vectors::Number;
  using Vector = typename Vectors::Type;
  const Vector zero{};
  Vector value[Vectors::kParts], reach[Vectors::kParts], size[Vectors::kParts];
  for (size_t part = 0; part < Vectors::kParts; ++part) {
    value[part] = reach[part] = size[part] = zero;
  }
  size_t i = 0;
  for (; i + kSums <= work.width; i += kSums) {
    for (size_t part = 0; part < Vectors::kParts; ++part) {
      const size_t at = i + part * Vectors::kStep;
      const Vector a = *reinterpret_cast<const Vector*>(work.a + at);
      const Vector x = *reinterpret_cast<const Vector*>(work.x + at);
      const Vector product = a * x;
      const Vector scaled =
          work.scale != nullptr ? a * *reinterpret_cast<const Vector*>(work.scale + at) : a;
      value[part] += a != zero ? product : zero;
      reach[part] += scaled < zero ? -scaled : scaled;
      size[part] += a != zero ? (product < zero ? -product : product) : zero;
    }
  }
  T values[kSums], reaches[kSums], sizes[kSums];
  for (size_t part = 0; part < kSums; ++part) {
    values[part] = value[part / Vectors::kStep][part % Vectors::kStep];
    reaches[part] = reach[part / Vectors::kStep][part % Vectors::kStep];
    sizes[part] = size[part / Vectors::kStep][part % Vectors::kStep];
  }
  for (; i < work.width; ++i) {
    const T a = work.a[i], product = term_of(a, work.x[i]);
    values[i % kSums] += product;
    reaches[i % kSums] += std::abs(work.scale != nullptr ? a * work.scale[i] : a);
    sizes[i % kSums] += std::abs(product);
  }
  result = {folded(values), folded(reaches), folded(sizes)};
}

#define FCP_ROWS_FOR(Number)                                                          \
  FCP_AVX2 Number line_row_avx2(const LineWork<Number>& work) {                       \
    return line_row<Eight<Number, 32>>(work);                                         \
  }                                                                                   \
  Number line_row_plain(const LineWork<Number>& work) {                               \
    return line_row<Eight<Number, 16>>(work);                                         \
  }                                                                                   \
  FCP_AVX2 void reach_row_avx2(const ReachWork<Number>& work, ReachSums<Number>& r) { \
    reach_row<Eight<Number, 32>>(work, r);                                            \
  }                                                                                   \
  void reach_row_plain(const ReachWork<Number>& work, ReachSums<Number>& r) {         \
    reach_row<Eight<Number, 16>>(work, r);                                            \
  }
FCP_ROWS_FOR(float)
FCP_ROWS_FOR(double)
#undef FCP_ROWS_FOR

void for_rows(int64_t rows, int64_t width, const std::function<void(size_t, size_t)>& work) {
  const size_t least = kThreadCoefficients / static_cast<size_t>(width + 1) + 1;
  parallel_rows(static_cast<size_t>(rows), least, static_cast<size_t>(at::get_num_threads()), work);
}

// [N', …] of the type of a, as rows [rows, D].
torch::Tensor met_by(const torch::Tensor& values, const torch::Tensor& a, int64_t rows) {
  return values.to(a.scalar_type()).expand(a.sizes().slice(1)).reshape({rows, -1}).contiguous();
}

template <typename T>
void run_lines(const torch::Tensor& a, const std::vector<torch::Tensor>& met, int64_t rows,
               torch::Tensor& out, torch::Tensor& sums) {
  const int64_t width = met[0].size(1);
  const bool wide = simd_width() >= 256;
  const auto at = [](const torch::Tensor& tensor, int64_t row, int64_t numbers) {
    return tensor.data_ptr<T>() + row * numbers;
  };
  for_rows(sums.numel(), width, [&](size_t first, size_t last) {
    for (auto r = static_cast<int64_t>(first); r < static_cast<int64_t>(last); ++r) {
      const int64_t n = r % rows;
      const LineWork<T> work = {at(a, r, width),           at(met[0], n, width),
                                at(met[1], n, width),      at(met[2], n, width),
                                at(met[3], n, width),      at(out, r, width),
                                static_cast<size_t>(width)};
      sums.data_ptr<T>()[r] += wide ? line_row_avx2(work) : line_row_plain(work);
    }
  });
}

template <typename T>
void run_reach(const torch::Tensor& a, const torch::Tensor& x, const torch::Tensor& scale,
               int64_t rows, RowReach& result) {
  const int64_t width = x.size(1);
  const bool wide = simd_width() >= 256;
  for_rows(result.value.numel(), width, [&](size_t first, size_t last) {
    for (auto r = static_cast<int64_t>(first); r < static_cast<int64_t>(last); ++r) {
      const ReachWork<T> work = {a.data_ptr<T>() + r * width, x.data_ptr<T>() + r % rows * width,
                                 scale.defined() ? scale.data_ptr<T>() : nullptr,
                                 static_cast<size_t>(width)};
      ReachSums<T> sums;
      wide ? reach_row_avx2(work, sums) : reach_row_plain(work, sums);
      result.value.data_ptr<T>()[r] = sums.value;
      result.reach.data_ptr<T>()[r] = sums.reach;
      result.size.data_ptr<T>()[r] = sums.size;
    }
  });
}

}  // namespace

bool takes_loops(const torch::Tensor& a) {
  bool takes = a.is_cpu();
  if constexpr (kCudaKernels) takes = takes || takes_cuda_loops(a);
  return takes && !a.requires_grad() && a.numel() > 0 &&
         (a.scalar_type() == torch::kFloat || a.scalar_type() == torch::kDouble);
}

torch::Tensor along_lines(const torch::Tensor& given, const SideLines& lines, int64_t rows,
                          torch::Tensor& bias) {
  if constexpr (kCudaKernels) {
    if (given.is_cuda()) {
      const auto met = [&](const torch::Tensor& values) { return met_by(values, given, rows); };
      return along_lines_cuda(given,
                              {met(lines.plus_slope), met(lines.plus_bias), met(lines.minus_slope),
                               met(lines.minus_bias)},
                              rows, bias);
    }
  }
  const torch::Tensor a = given.contiguous();
  std::vector<torch::Tensor> met;
  for (const torch::Tensor* each :
       {&lines.plus_slope, &lines.plus_bias, &lines.minus_slope, &lines.minus_bias}) {
    met.push_back(met_by(*each, a, rows));
  }
  torch::Tensor out = torch::empty_like(a);
  torch::Tensor sums = bias.clone(at::MemoryFormat::Contiguous);
  if (a.scalar_type() == torch::kFloat)
    run_lines<float>(a, met, rows, out, sums);
  else
    run_lines<double>(a, met, rows, out, sums);
  bias = sums;
  return out;
}

RowReach row_reach(const torch::Tensor& given, const torch::Tensor& x, const torch::Tensor& scale,
                   bool with_size) {
  const torch::Tensor met = x.to(given.scalar_type()).contiguous();
  const torch::Tensor weights =
      scale.defined() ? scale.to(given.scalar_type()).contiguous() : torch::Tensor();
  if constexpr (kCudaKernels) {
    if (given.is_cuda()) return row_reach_cuda(given, met, weights, with_size);
  }
  const torch::Tensor a = given.contiguous();
  const int64_t rows = x.size(0);
  const auto sums = [&] { return torch::empty({a.size(0), rows}, a.options()); };
  RowReach result = {sums(), sums(), sums()};
  if (a.scalar_type() == torch::kFloat)
    run_reach<float>(a, met, weights, rows, result);
  else
    run_reach<double>(a, met, weights, rows, result);
  if (!with_size) result.size = torch::Tensor();
  return result;
}

torch::Tensor weighted_sums(const torch::Tensor& a, const torch::Tensor& x, int64_t rows,
                            bool magnitude) {
  const torch::Tensor met = met_by(x, a, rows);
  // Σ |a·x| is Σ |a|·x for x ≥ 0, as errors are.
  const RowReach sums = row_reach(a.reshape({a.size(0), rows, -1}), met, {}, magnitude);
  return magnitude ? sums.size : sums.value;
}

std::vector<bool> used_places(const torch::Tensor& given) {
  const torch::Tensor a = given.contiguous();
  const int64_t places = a.size(2), rows = a.size(0) * a.size(1);
  std::vector<bool> used(static_cast<size_t>(places));
  const auto mark = [&](const auto* from) {
    std::vector<unsigned char> seen(static_cast<size_t>(places));
    for (int64_t row = 0; row < rows; ++row, from += places) {
      for (int64_t i = 0; i < places; ++i) seen[static_cast<size_t>(i)] |= from[i] != 0;
    }
    for (size_t i = 0; i < seen.size(); ++i) used[i] = seen[i] != 0;
  };
  if (a.scalar_type() == torch::kFloat)
    mark(a.data_ptr<float>());
  else
    mark(a.data_ptr<double>());
  return used;
}

}  // namespace fcp
