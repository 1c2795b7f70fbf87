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

}  // namespace fcp
