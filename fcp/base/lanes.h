// Sixteen float32 numbers that are computed with at once, in GCC's vector extensions, which clang
// has too: for the few loops whose speed matters and that compilers do not vectorise by themselves
// (sums, largest numbers, sparse sums of rows).
//
// Rows are padded with zeros to a multiple of kLanes. A function that uses Lanes is written once,
// as an inline function with FCP_KERNEL, and compiled for several instruction sets by wrappers:
//
//   FCP_AVX512 void walk_avx512(Work& work) { walk(work); }
//   FCP_AVX2 void walk_avx2(Work& work) { walk(work); }
//   …
//   simd_width() == 512 ? walk_avx512(work) : simd_width() == 256 ? walk_avx2(work) : walk(work);
//
// Lanes are never passed by value: that would depend on the instruction set. Nor by reference: they
// may lie anywhere among numbers, but clang takes a function's reference to mean a vector that lies
// at a multiple of its size. Pointers it takes as they are. Loops that keep many
// vectors at a time take Floats16, Floats8 or Floats4 by the instruction set instead: where Lanes
// are wider than its registers, they are taken apart in memory. Tested by tests/base/lanes_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

namespace fcp {

constexpr size_t kLanes = 16;
typedef float Lanes __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t LaneMask __attribute__((vector_size(64), aligned(4), may_alias));  // 0 or −1 each

// In structs, because a template would drop the attributes of a type that is its argument.
struct Floats16 {
  typedef Lanes Type;
};
struct Floats8 {
  typedef float Type __attribute__((vector_size(32), aligned(4), may_alias));
};
struct Floats4 {
  typedef float Type __attribute__((vector_size(16), aligned(4), may_alias));
};
template <typename Floats>
constexpr size_t kFloatsIn = sizeof(typename Floats::Type) / sizeof(float);

#define FCP_KERNEL [[gnu::always_inline]] inline
#if defined(__x86_64__)
#define FCP_AVX512 [[gnu::target("avx512f,avx512vl,avx2,fma")]]
#define FCP_AVX2 [[gnu::target("avx2,fma")]]
#else
#define FCP_AVX512
#define FCP_AVX2
#endif

// 512, 256 or, for any other processor, 128.
inline int simd_width() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) return 512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 256;
#endif
  return 128;
}

// Rows of numbers that begin where a cache line does: a vector that spans two takes twice the time.
template <typename T>
struct LineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kLine{64};

  LineAllocator() = default;
  template <typename Other>
  LineAllocator(const LineAllocator<Other>&) {}  // as containers ask for it

  T* allocate(size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kLine)); }
  void deallocate(T* at, size_t) { ::operator delete(at, kLine); }
  friend bool operator==(LineAllocator, LineAllocator) { return true; }
};
using FloatRows = std::vector<float, LineAllocator<float>>;

constexpr size_t padded(size_t numbers) { return (numbers + kLanes - 1) / kLanes * kLanes; }

FCP_KERNEL Lanes* lanes(float* at) { return reinterpret_cast<Lanes*>(at); }
FCP_KERNEL const Lanes* lanes(const float* at) { return reinterpret_cast<const Lanes*>(at); }

template <typename Floats>
FCP_KERNEL typename Floats::Type* floats(float* at) {
  return reinterpret_cast<typename Floats::Type*>(at);
}
template <typename Floats>
FCP_KERNEL const typename Floats::Type* floats(const float* at) {
  return reinterpret_cast<const typename Floats::Type*>(at);
}

// Folded in halves, always in the same order.
FCP_KERNEL float sum_of(const Lanes* of) {
  const Lanes v = *of;
  Lanes s = v + __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
  s += __builtin_shufflevector(s, s, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3);
  return (s[0] + s[2]) + (s[1] + s[3]);
}

FCP_KERNEL float largest_of(const Lanes* of) {
  const Lanes v = *of;
  Lanes s = __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
  s = v > s ? v : s;
  const Lanes t = __builtin_shufflevector(s, s, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3);
  s = s > t ? s : t;
  const float even = s[0] > s[2] ? s[0] : s[2], odd = s[1] > s[3] ? s[1] : s[3];
  return even > odd ? even : odd;
}

FCP_KERNEL bool any_of(const LaneMask* of) {
  const LaneMask m = *of;
  LaneMask s =
      m | __builtin_shufflevector(m, m, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
  s |= __builtin_shufflevector(s, s, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3);
  return (s[0] | s[1] | s[2] | s[3]) != 0;
}

// Swaps the blocks of `kSide` numbers off the diagonal of the two rows' squares.
template <size_t kSide, size_t... kLane>
FCP_KERNEL void swap_blocks(Lanes* a, Lanes* b, std::index_sequence<kLane...>) {
  const Lanes first =
      __builtin_shufflevector(*a, *b, ((kLane & kSide) == 0 ? kLane : kLanes + kLane - kSide)...);
  *b = __builtin_shufflevector(*a, *b, ((kLane & kSide) == 0 ? kLane + kSide : kLanes + kLane)...);
  *a = first;
}

template <size_t kSide>
FCP_KERNEL void swap_all_blocks(Lanes* rows) {
  for (size_t i = 0; i < kLanes; ++i) {
    if ((i & kSide) == 0) {
      swap_blocks<kSide>(rows + i, rows + i + kSide, std::make_index_sequence<kLanes>());
    }
  }
}

// Sixteen rows that begin every `stride` numbers become sixteen columns, without gaps.
FCP_KERNEL void transpose_lanes(const float* from, size_t stride, float* to) {
  Lanes rows[kLanes];
  for (size_t i = 0; i < kLanes; ++i) rows[i] = *lanes(from + i * stride);
  swap_all_blocks<8>(rows);
  swap_all_blocks<4>(rows);
  swap_all_blocks<2>(rows);
  swap_all_blocks<1>(rows);
  for (size_t i = 0; i < kLanes; ++i) *lanes(to + i * kLanes) = rows[i];
}

// Some rows of a matrix, each with a weight.
struct WeightedRows {
  const uint32_t* rows;
  const float* weights;
  size_t count;
};

// sum += Σ weight · row, over rows of `width` padded numbers, kParts vectors of which stay in
// registers.
template <size_t kParts>
FCP_KERNEL void add_parts(float* sum, const float* matrix, size_t width, const WeightedRows& some) {
  Lanes parts[kParts];
  for (size_t part = 0; part < kParts; ++part) parts[part] = *lanes(sum + part * kLanes);
  for (size_t i = 0; i < some.count; ++i) {
    const float* row = matrix + some.rows[i] * width;
    const float weight = some.weights[i];
    for (size_t part = 0; part < kParts; ++part)
      parts[part] += weight * *lanes(row + part * kLanes);
  }
  for (size_t part = 0; part < kParts; ++part) *lanes(sum + part * kLanes) = parts[part];
}

FCP_KERNEL void add_rows(float* sum, const float* matrix, size_t width, const WeightedRows& some) {
  size_t at = 0;
  for (; at + 4 * kLanes <= width; at += 4 * kLanes)
    add_parts<4>(sum + at, matrix + at, width, some);
  for (; at < width; at += kLanes) add_parts<1>(sum + at, matrix + at, width, some);
}

// Functions of many float32 numbers at once, in vectors of the processor's own width (Floats16,
// Floats8 or Floats4). Every number goes through the same operations wherever it stands,
// so its bits do not depend on its place.
//
//   exp(x) = 2ⁿ (1 + r + r² p(r)),  n = round(x / ln 2),  r = x − n ln 2
//   erf(x) = x + x p(x²) for |x| ≤ 1,  ±(1 − exp(−q(|x| − 1))) beyond
//   tanh(x) = x + x³ p(x²) for |x| ≤ 0.625,  ±(1 − 2 / (exp(2|x|) + 1)) beyond
//   sigmoid(x) = 1 / (1 + exp(−x))
//
// The polynomials are minimax fits: p to 3e-9 (of exp), 1e-9 and 2e-8 (of tanh), q = −ln erfc to
// 1e-9 of erfc. Errors: below 1.5 units in the last place each, of tanh and sigmoid below 3. exp is
// 0 below −87.3 and ∞ above 88.7. NaN stays NaN. exp_below_zero is exp of doubles, of numbers that
// are not positive, to 1 unit in the last place. Tested by tests/base/lanes_test.cc.

// `count` numbers, the rest of the vector filled with `fill`.
template <typename Floats>
FCP_KERNEL void load_floats(const float* from, size_t count, float fill,
                            typename Floats::Type& to) {
  if (count >= kFloatsIn<Floats>) {
    to = *floats<Floats>(from);
    return;
  }
  to = typename Floats::Type{} + fill;
  for (size_t i = 0; i < count; ++i) to[i] = from[i];
}

template <typename Floats>
FCP_KERNEL void store_floats(const typename Floats::Type& from, size_t count, float* to) {
  if (count >= kFloatsIn<Floats>) {
    *floats<Floats>(to) = from;
    return;
  }
  for (size_t i = 0; i < count; ++i) to[i] = from[i];
}

// As many integers as Floats has numbers.
template <typename Floats>
struct IntsOf {
  typedef int32_t Type __attribute__((vector_size(sizeof(typename Floats::Type)), may_alias));
};

// Σ c_i xⁱ, the constants from the highest power on.
template <typename Floats, size_t kTerms>
FCP_KERNEL void polynomial(const float (&constants)[kTerms], const typename Floats::Type& x,
                           typename Floats::Type& sum) {
  sum = typename Floats::Type{} + constants[0];
#pragma GCC unroll 16
  for (size_t i = 1; i < kTerms; ++i) sum = sum * x + constants[i];
}

// Doubles, as many as the width of a vector has.
struct Doubles8 {
  typedef double Type __attribute__((vector_size(64), aligned(8), may_alias));
  typedef int64_t Ints __attribute__((vector_size(64), may_alias));
  typedef float Floats __attribute__((vector_size(32), aligned(4), may_alias));  // as many of them
};
struct Doubles4 {
  typedef double Type __attribute__((vector_size(32), aligned(8), may_alias));
  typedef int64_t Ints __attribute__((vector_size(32), may_alias));
  typedef float Floats __attribute__((vector_size(16), aligned(4), may_alias));
};
struct Doubles2 {
  typedef double Type __attribute__((vector_size(16), aligned(8), may_alias));
  typedef int64_t Ints __attribute__((vector_size(16), may_alias));
  typedef float Floats __attribute__((vector_size(8), aligned(4), may_alias));
};

// exp(x) for x ≤ 0; 0 below −708.3, where numbers begin to lose bits.
template <typename Doubles>
FCP_KERNEL void exp_below_zero(typename Doubles::Type& x) {
  typedef typename Doubles::Type Vector;
  constexpr double kLeast = -708.3;
  constexpr double kRound = 6755399441055744.0;  // 1.5 · 2⁵²: adding it rounds to an integer
  constexpr size_t kCount = 10;
  constexpr double kTerms[kCount] = {2.510038549551032e-08,  2.7620088445409746e-07,
                                     2.7557268459997064e-06, 2.4801521295954376e-05,
                                     0.00019841269863053618, 0.0013888888917213717,
                                     0.008333333333330062,   0.04166666666662413,
                                     0.16666666666666669,    0.5000000000000001};
  const Vector held = x < kLeast ? Vector{} + kLeast : x;
  const Vector shifted = held * 1.4426950408889634 + kRound;
  const Vector whole = shifted - kRound;
  const Vector r = (held - whole * 0.693145751953125) - whole * 1.4286068203094172e-06;
  Vector p = Vector{} + kTerms[0];
#pragma GCC unroll 16
  for (size_t i = 1; i < kCount; ++i) p = p * r + kTerms[i];
  const Vector y = (p * r) * r + r + 1.0;
  const typename Doubles::Ints n = (typename Doubles::Ints)shifted - 0x4338000000000000;
  const Vector power = (Vector)((n + 1023) << 52);
  // NOLINTNEXTLINE(misc-redundant-expression): NaN stays NaN
  x = x < kLeast ? Vector{} : x == x ? y * power : x;
}

// exp(x) = y · 2ⁿ for x in [−88, 89], y near 1; casts of vectors keep their bits.
template <typename Floats>
FCP_KERNEL void exp_parts(const typename Floats::Type& x, typename Floats::Type& y,
                          typename IntsOf<Floats>::Type& n) {
  typedef typename Floats::Type Vector;
  constexpr float kRound = 12582912.0f;  // 1.5 · 2²³: adding it rounds to an integer
  const Vector shifted = x * 1.44269504f + kRound;
  const Vector whole = shifted - kRound;
  const Vector r = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;  // ln 2 in two parts
  Vector p;
  polynomial<Floats>({0.00139506022f, 0.00836895313f, 0.041666206f, 0.166665182f, 0.5f}, r, p);
  y = (p * r) * r + r + 1.0f;
  n = (typename IntsOf<Floats>::Type)shifted - 0x4B400000;
}

template <typename Floats>
FCP_KERNEL void exp_floats(typename Floats::Type& x) {
  typedef typename Floats::Type Vector;
  typedef typename IntsOf<Floats>::Type Ints;
  constexpr float kLeast = -87.33654f, kMost = 88.72283f;
  const Vector zero = {};
  const Vector held = x < kLeast ? zero + kLeast : x > kMost ? zero + kMost : x;
  Vector y;
  Ints n;
  exp_parts<Floats>(held, y, n);
  const Ints half = n >> 1;  // in two factors, because n may be 128
  y = y * (Vector)((half + 127) << 23) * (Vector)((n - half + 127) << 23);
  // NOLINTNEXTLINE(misc-redundant-expression): NaN stays NaN
  x = x < kLeast ? zero : x > kMost ? zero + __builtin_inff() : x == x ? y : x;
}

template <typename Floats>
FCP_KERNEL void erf_floats(typename Floats::Type& x) {
  typedef typename Floats::Type Vector;
  Vector inner, outer;
  polynomial<Floats>({7.88912221e-05f, -0.000802084222f, 0.00518953521f, -0.0268544443f,
                      0.112836003f, -0.37612626f, 0.128379166f},
                     x * x, inner);
  const Vector size = x < 0.0f ? -x : x;
  const Vector t = (size > 4.0f ? Vector{} + 4.0f : size) - 1.0f;
  polynomial<Floats>({1.17424577e-06f, -2.92108816e-05f, 0.00030835942f, -0.00203550421f,
                      0.0100620454f, -0.0415688381f, -0.84310621f, -2.63896751f, -1.84960556f},
                     t, outer);
  Vector y;
  typename IntsOf<Floats>::Type n;
  exp_parts<Floats>(outer, y, n);
  outer = 1.0f - y * (Vector)((n + 127) << 23);
  // NOLINTNEXTLINE(misc-redundant-expression): NaN stays NaN
  x = size <= 1.0f ? x * inner + x : x < 0.0f ? -outer : x == x ? outer : x;
}

template <typename Floats>
FCP_KERNEL void sigmoid_floats(typename Floats::Type& x) {
  x = -x;
  exp_floats<Floats>(x);
  x = 1.0f / (x + 1.0f);
}

template <typename Floats>
FCP_KERNEL void tanh_floats(typename Floats::Type& x) {
  typedef typename Floats::Type Vector;
  const Vector square = x * x, size = x < 0.0f ? -x : x;
  Vector inner, outer = size * 2.0f;
  polynomial<Floats>({-0.00610494801f, 0.0210036412f, -0.0538524975f, 0.133327823f, -0.333333291f},
                     square, inner);
  exp_floats<Floats>(outer);
  outer = 1.0f - 2.0f / (outer + 1.0f);
  x = size <= 0.625f ? inner * square * x + x : x < 0.0f ? -outer : outer;
}

}  // namespace fcp
