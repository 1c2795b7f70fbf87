#include "fcp/nn/kernels/cpu/finish.h"

#include <algorithm>

#include <ATen/Parallel.h>
#include <torch/utils.h>

#include "fcp/base/parallel.h"
#include "fcp/nn/kernels/cpu/bending.h"

namespace fcp {
namespace {

// `count` numbers, all of a vector or the first of them.
template <typename Floats, Bend kBend>
FCP_KERNEL void finish_some(const Bending& with, const FinishRows& work, size_t at, size_t count) {
  typedef typename Floats::Type Vector;
  constexpr size_t kStep = kFloatsIn<Floats>;
  float edge[kStep] = {}, more[kStep] = {};
  const float* in = work.in + at;
  const float* added = work.added == nullptr ? nullptr : work.added + at;
  if (count < kStep) {
    std::copy_n(in, count, edge);
    if (added != nullptr) std::copy_n(added, count, more);
    in = edge;
    if (added != nullptr) added = more;
  }
  Vector x = *floats<Floats>(in);
  if (added != nullptr) x += *floats<Floats>(added);
  bend_floats<Floats, kBend>(with, &x);
  if (count < kStep) {
    *floats<Floats>(edge) = x;
    std::copy_n(edge, count, work.out + at);
  } else {
    *floats<Floats>(work.out + at) = x;
  }
}

template <typename Floats, Bend kBend>
FCP_KERNEL void finish_all(const Bending& with, const FinishRows& work) {
  constexpr size_t kStep = kFloatsIn<Floats>;
  for (size_t row = 0; row < work.rows; ++row) {
    const size_t begin = row * work.step;
    size_t i = 0;
    for (; i + kStep <= work.columns; i += kStep) {
      finish_some<Floats, kBend>(with, work, begin + i, kStep);
    }
    if (i < work.columns) finish_some<Floats, kBend>(with, work, begin + i, work.columns - i);
  }
}

template <Bend kBend>
FCP_AVX512 void finish_avx512(const Bending& with, const FinishRows& work) {
  finish_all<Floats16, kBend>(with, work);
}
template <Bend kBend>
FCP_AVX2 void finish_avx2(const Bending& with, const FinishRows& work) {
  finish_all<Floats8, kBend>(with, work);
}
template <Bend kBend>
void finish_plain(const Bending& with, const FinishRows& work) {
  finish_all<Floats4, kBend>(with, work);
}

template <Bend kBend>
void finish_by_width(const Bending& with, const FinishRows& work) {
  const int width = simd_width();
  if (width == 512) return finish_avx512<kBend>(with, work);
  if (width == 256) return finish_avx2<kBend>(with, work);
  finish_plain<kBend>(with, work);
}

}  // namespace

void finish_rows(const Bending& activation, const FinishRows& rows) {
  switch (activation.bend) {
    case Bend::kNone:
      return finish_by_width<Bend::kNone>(activation, rows);
    case Bend::kRelu:
      return finish_by_width<Bend::kRelu>(activation, rows);
    case Bend::kClip:
      return finish_by_width<Bend::kClip>(activation, rows);
    case Bend::kHardSwish:
      return finish_by_width<Bend::kHardSwish>(activation, rows);
    case Bend::kHardSigmoid:
      return finish_by_width<Bend::kHardSigmoid>(activation, rows);
    case Bend::kGelu:
      return finish_by_width<Bend::kGelu>(activation, rows);
    case Bend::kErfGelu:
      return finish_by_width<Bend::kErfGelu>(activation, rows);
  }
}

torch::Tensor activated(const torch::Tensor& x, const Bending& activation) {
  constexpr size_t kThreadNumbers = size_t{1} << 16;  // below, a thread costs more than it does
  const torch::Tensor plain = x.detach();
  const torch::Tensor from = plain.is_non_overlapping_and_dense() ? plain : plain.contiguous();
  torch::Tensor y = torch::empty_like(from);
  const float* in = from.data_ptr<float>();
  float* out = y.data_ptr<float>();
  parallel_rows(static_cast<size_t>(x.numel()), kThreadNumbers,
                static_cast<size_t>(at::get_num_threads()), [&](size_t first, size_t last) {
                  finish_rows(activation, {in + first, nullptr, out + first, 1, last - first, 0});
                });
  return y;
}

}  // namespace fcp
