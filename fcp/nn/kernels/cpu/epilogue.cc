#include "fcp/nn/kernels/cpu/epilogue.h"

#include <algorithm>

#include <ATen/Parallel.h>
#include <torch/utils.h>

#include "fcp/base/parallel.h"

namespace fcp {
namespace {

// `count` numbers, all of a vector or the first of them.
template <typename Floats, ActivationKind kKind>
FCP_KERNEL void epilogue_some(const FusedActivation& with, const EpilogueRows& work, size_t at,
                              size_t count) {
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
  activate_floats<Floats, kKind>(with, &x);
  if (count < kStep) {
    *floats<Floats>(edge) = x;
    std::copy_n(edge, count, work.out + at);
  } else {
    *floats<Floats>(work.out + at) = x;
  }
}

template <typename Floats, ActivationKind kKind>
FCP_KERNEL void epilogue_all(const FusedActivation& with, const EpilogueRows& work) {
  constexpr size_t kStep = kFloatsIn<Floats>;
  for (size_t row = 0; row < work.rows; ++row) {
    const size_t begin = row * work.step;
    size_t i = 0;
    for (; i + kStep <= work.columns; i += kStep) {
      epilogue_some<Floats, kKind>(with, work, begin + i, kStep);
    }
    if (i < work.columns) epilogue_some<Floats, kKind>(with, work, begin + i, work.columns - i);
  }
}

template <ActivationKind kKind>
FCP_AVX512 void epilogue_avx512(const FusedActivation& with, const EpilogueRows& work) {
  epilogue_all<Floats16, kKind>(with, work);
}
template <ActivationKind kKind>
FCP_AVX2 void epilogue_avx2(const FusedActivation& with, const EpilogueRows& work) {
  epilogue_all<Floats8, kKind>(with, work);
}
template <ActivationKind kKind>
void epilogue_plain(const FusedActivation& with, const EpilogueRows& work) {
  epilogue_all<Floats4, kKind>(with, work);
}

template <ActivationKind kKind>
void epilogue_by_width(const FusedActivation& with, const EpilogueRows& work) {
  const int width = simd_width();
  if (width == 512) return epilogue_avx512<kKind>(with, work);
  if (width == 256) return epilogue_avx2<kKind>(with, work);
  epilogue_plain<kKind>(with, work);
}

}  // namespace

void epilogue_rows(const FusedActivation& activation, const EpilogueRows& rows) {
  switch (activation.kind) {
    case ActivationKind::kNone:
      return epilogue_by_width<ActivationKind::kNone>(activation, rows);
    case ActivationKind::kRelu:
      return epilogue_by_width<ActivationKind::kRelu>(activation, rows);
    case ActivationKind::kClip:
      return epilogue_by_width<ActivationKind::kClip>(activation, rows);
    case ActivationKind::kHardSwish:
      return epilogue_by_width<ActivationKind::kHardSwish>(activation, rows);
    case ActivationKind::kHardSigmoid:
      return epilogue_by_width<ActivationKind::kHardSigmoid>(activation, rows);
    case ActivationKind::kGelu:
      return epilogue_by_width<ActivationKind::kGelu>(activation, rows);
    case ActivationKind::kErfGelu:
      return epilogue_by_width<ActivationKind::kErfGelu>(activation, rows);
  }
}

torch::Tensor activated(const torch::Tensor& x, const FusedActivation& activation) {
  constexpr size_t kThreadNumbers = size_t{1} << 16;  // below, a thread costs more than it does
  const torch::Tensor plain = x.detach();
  const torch::Tensor from = plain.is_non_overlapping_and_dense() ? plain : plain.contiguous();
  torch::Tensor y = torch::empty_like(from);
  const float* in = from.data_ptr<float>();
  float* out = y.data_ptr<float>();
  parallel_rows(static_cast<size_t>(x.numel()), kThreadNumbers,
                static_cast<size_t>(at::get_num_threads()), [&](size_t first, size_t last) {
                  epilogue_rows(activation, {in + first, nullptr, out + first, 1, last - first, 0});
                });
  return y;
}

}  // namespace fcp
