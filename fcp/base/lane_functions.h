// Functions of many float32 numbers at once, in vectors of the processor's own width (Floats16,
// Floats8 or Floats4 of lanes.h). Every number goes through the same operations wherever it stands,
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
#pragma once

#include <cstddef>
#include <cstdint>

#include "fcp/base/lanes.h"

namespace fcp {

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
