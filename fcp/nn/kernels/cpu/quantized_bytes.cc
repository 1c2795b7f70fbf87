#include "fcp/nn/kernels/cpu/quantized_bytes.h"

#include <limits>

#include <ATen/Parallel.h>
#include <torch/utils.h>

#include "fcp/base/lanes.h"
#include "fcp/base/parallel.h"

namespace fcp {
namespace {

constexpr size_t kByteThreadNumbers = size_t{1} << 17;  // below, a thread costs more than it does

// As many bytes as Floats has numbers.
template <typename Floats, typename Byte>
struct BytesOf {
  typedef Byte Type __attribute__((vector_size(kFloatsIn<Floats>), aligned(1), may_alias));
};

// What is far beyond a byte is brought near first, because adding kRound rounds only what is below
// 2²²; NaN becomes the least.
template <typename Floats, typename Byte>
FCP_KERNEL void to_bytes(const float* x, size_t count, const ByteStep& step, Byte* q) {
  typedef typename Floats::Type Vector;
  typedef typename BytesOf<Floats, Byte>::Type Bytes;
  constexpr size_t kStep = kFloatsIn<Floats>;
  constexpr float kFar = 1 << 20, kRound = 12582912.0f;  // 1.5 · 2²³
  const Vector least = Vector{} + static_cast<float>(std::numeric_limits<Byte>::min()),
               most = Vector{} + static_cast<float>(std::numeric_limits<Byte>::max());
  const Vector far = Vector{} + kFar, near = -far;
  const float scale = step.scale;
  const auto zero = static_cast<float>(step.zero);
  for (size_t i = 0; i < count; i += kStep) {
    Vector steps;
    load_floats<Floats>(x + i, count - i, 0, steps);
    steps /= scale;
    steps = steps > near ? steps : near;
    steps = steps < far ? steps : far;
    steps = ((steps + kRound) - kRound) + zero;
    steps = steps > least ? steps : least;
    steps = steps < most ? steps : most;
    const auto whole = __builtin_convertvector(steps, typename IntsOf<Floats>::Type);
    const Bytes bytes = __builtin_convertvector(whole, Bytes);
    if (count - i >= kStep) {
      *reinterpret_cast<Bytes*>(q + i) = bytes;
    } else {
      for (size_t j = i; j < count; ++j) q[j] = bytes[j - i];
    }
  }
}

template <typename Floats, typename Byte>
FCP_KERNEL void from_bytes(const Byte* q, size_t count, const ByteStep& step, float* x) {
  typedef typename BytesOf<Floats, Byte>::Type Bytes;
  constexpr size_t kStep = kFloatsIn<Floats>;
  const float scale = step.scale;
  const int32_t zero = step.zero;
  const size_t whole = count / kStep * kStep;
  for (size_t i = 0; i < whole; i += kStep) {
    const Bytes bytes = *reinterpret_cast<const Bytes*>(q + i);
    const auto steps = __builtin_convertvector(bytes, typename IntsOf<Floats>::Type) - zero;
    *floats<Floats>(x + i) = __builtin_convertvector(steps, typename Floats::Type) * scale;
  }
  for (size_t j = 0; j < count - whole; ++j) {
    x[whole + j] = static_cast<float>(static_cast<int32_t>(q[whole + j]) - zero) * scale;
  }
}

template <typename Byte>
struct ByteLoops {
  FCP_AVX512 static void to_avx512(const float* x, size_t n, const ByteStep& step, Byte* q) {
    to_bytes<Floats16>(x, n, step, q);
  }
  FCP_AVX2 static void to_avx2(const float* x, size_t n, const ByteStep& step, Byte* q) {
    to_bytes<Floats8>(x, n, step, q);
  }
  static void to_plain(const float* x, size_t n, const ByteStep& step, Byte* q) {
    to_bytes<Floats4>(x, n, step, q);
  }
  FCP_AVX512 static void from_avx512(const Byte* q, size_t n, const ByteStep& step, float* x) {
    from_bytes<Floats16>(q, n, step, x);
  }
  FCP_AVX2 static void from_avx2(const Byte* q, size_t n, const ByteStep& step, float* x) {
    from_bytes<Floats8>(q, n, step, x);
  }
  static void from_plain(const Byte* q, size_t n, const ByteStep& step, float* x) {
    from_bytes<Floats4>(q, n, step, x);
  }

  static auto to() {
    const int width = simd_width();
    return width == 512 ? to_avx512 : width == 256 ? to_avx2 : to_plain;
  }
  static auto from() {
    const int width = simd_width();
    return width == 512 ? from_avx512 : width == 256 ? from_avx2 : from_plain;
  }
};

template <typename From, typename To, typename Loop>
void share_bytes(const torch::Tensor& from, torch::Tensor& to, const ByteStep& step, Loop loop) {
  const From* in = from.data_ptr<From>();
  To* out = to.data_ptr<To>();
  parallel_rows(static_cast<size_t>(from.numel()), kByteThreadNumbers,
                static_cast<size_t>(at::get_num_threads()), [&](size_t first, size_t last) {
                  loop(in + first, last - first, step, out + first);
                });
}

}  // namespace

bool takes_byte_loops(const torch::Tensor& x) {
  const torch::ScalarType type = x.scalar_type();
  const bool known = type == torch::kFloat || type == torch::kByte || type == torch::kChar;
  return known && x.is_cpu() && x.is_non_overlapping_and_dense();
}

torch::Tensor quantized_bytes(const torch::Tensor& x, const ByteStep& step,
                              torch::ScalarType type) {
  const torch::Tensor from = x.detach();
  torch::Tensor q = torch::empty_like(from, from.options().dtype(type));
  if (type == torch::kByte)
    share_bytes<float, uint8_t>(from, q, step, ByteLoops<uint8_t>::to());
  else
    share_bytes<float, int8_t>(from, q, step, ByteLoops<int8_t>::to());
  return q;
}

torch::Tensor dequantized_bytes(const torch::Tensor& q, const ByteStep& step) {
  torch::Tensor x = torch::empty_like(q, q.options().dtype(torch::kFloat));
  if (q.scalar_type() == torch::kByte)
    share_bytes<uint8_t, float>(q, x, step, ByteLoops<uint8_t>::from());
  else
    share_bytes<int8_t, float>(q, x, step, ByteLoops<int8_t>::from());
  return x;
}

}  // namespace fcp
