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
// Lanes are never passed by value: that would depend on the instruction set.
// Tested by tests/base/lanes_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fcp {

constexpr size_t kLanes = 16;
typedef float Lanes __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t LaneMask __attribute__((vector_size(64), aligned(4), may_alias));  // 0 or −1 each

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

constexpr size_t padded(size_t numbers) { return (numbers + kLanes - 1) / kLanes * kLanes; }

FCP_KERNEL Lanes& lanes(float* at) { return *reinterpret_cast<Lanes*>(at); }
FCP_KERNEL const Lanes& lanes(const float* at) { return *reinterpret_cast<const Lanes*>(at); }

// Folded in halves, always in the same order.
FCP_KERNEL float sum_of(const Lanes& v) {
  Lanes s = v + __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
  s += __builtin_shufflevector(s, s, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3);
  return (s[0] + s[2]) + (s[1] + s[3]);
}

FCP_KERNEL float largest_of(const Lanes& v) {
  Lanes s = __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
  s = v > s ? v : s;
  const Lanes t = __builtin_shufflevector(s, s, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3);
  s = s > t ? s : t;
  const float even = s[0] > s[2] ? s[0] : s[2], odd = s[1] > s[3] ? s[1] : s[3];
  return even > odd ? even : odd;
}

// Some rows of a matrix, each with a weight.
struct WeightedRows {
  const uint32_t* rows;
  const float* weights;
  size_t count;
};

// sum += Σ weight · row, over rows of `width` padded numbers.
FCP_KERNEL void add_rows(float* sum, const float* matrix, size_t width, const WeightedRows& some) {
  size_t i = 0;
  for (; i + 4 <= some.count; i += 4) {
    const float* a = matrix + some.rows[i] * width;
    const float* b = matrix + some.rows[i + 1] * width;
    const float* c = matrix + some.rows[i + 2] * width;
    const float* d = matrix + some.rows[i + 3] * width;
    const float* w = some.weights + i;
    for (size_t j = 0; j < width; j += kLanes) {
      lanes(sum + j) +=
          w[0] * lanes(a + j) + w[1] * lanes(b + j) + w[2] * lanes(c + j) + w[3] * lanes(d + j);
    }
  }
  for (; i < some.count; ++i) {
    const float* a = matrix + some.rows[i] * width;
    for (size_t j = 0; j < width; j += kLanes) lanes(sum + j) += some.weights[i] * lanes(a + j);
  }
}

}  // namespace fcp
