#include "fcp/network/channel_scale.h"

#include <algorithm>

#include <ATen/Parallel.h>
#include <torch/utils.h>

#include "fcp/base/lanes.h"
#include "fcp/base/parallel.h"
#include "fcp/network/channel_sums.h"

namespace fcp {
namespace {

// `count` numbers of one channel, or of as many channels side by side.
struct ScaleWork {
  const float* in;
  float* out;
  const float* scale;
  const float* shift;
  size_t count;
  bool one;  // channel
};

template <typename Floats>
FCP_KERNEL void scale_numbers(const ScaleWork& work) {
  typedef typename Floats::Type Vector;
  constexpr size_t kStep = kFloatsIn<Floats>;
  for (size_t i = 0; i < work.count; i += kStep) {
    const size_t count = std::min(kStep, work.count - i);
    const Vector zero = {};
    Vector scale = zero + work.scale[0], shift = zero + work.shift[0];
    if (count == kStep) {
      if (!work.one) {
        scale = *floats<Floats>(work.scale + i);
        shift = *floats<Floats>(work.shift + i);
      }
      *floats<Floats>(work.out + i) = *floats<Floats>(work.in + i) * scale + shift;
      continue;
    }
    float edge[3][kStep] = {};
    std::copy_n(work.in + i, count, edge[0]);
    if (!work.one) {
      std::copy_n(work.scale + i, count, edge[1]);
      std::copy_n(work.shift + i, count, edge[2]);
      scale = *floats<Floats>(edge[1]);
      shift = *floats<Floats>(edge[2]);
    }
    *floats<Floats>(edge[0]) = *floats<Floats>(edge[0]) * scale + shift;
    std::copy_n(edge[0], count, work.out + i);
  }
}

FCP_AVX512 void scale_avx512(const ScaleWork& work) { scale_numbers<Floats16>(work); }
FCP_AVX2 void scale_avx2(const ScaleWork& work) { scale_numbers<Floats8>(work); }
void scale_plain(const ScaleWork& work) { scale_numbers<Floats4>(work); }

}  // namespace

torch::Tensor scaled_channels(const torch::Tensor& x, const std::vector<float>& scale,
                              const std::vector<float>& shift, const Bending& activation) {
  constexpr size_t kLeastNumbers = size_t{1} << 16;  // below, a thread costs more than it does
  const bool side_by_side = channels_lie_last(x);
  const torch::Tensor in = side_by_side ? x.detach() : x.detach().contiguous();
  torch::Tensor out = torch::empty_like(in);
  if (out.numel() == 0) return out;
  const size_t channels = scale.size(), numbers = static_cast<size_t>(x.numel());
  const size_t width =
      side_by_side ? channels : numbers / (static_cast<size_t>(x.size(0)) * channels);
  const float* from = in.data_ptr<float>();
  float* to = out.data_ptr<float>();
  const int bits = simd_width();
  const auto kernel = bits == 512 ? scale_avx512 : bits == 256 ? scale_avx2 : scale_plain;
  parallel_rows(numbers / width, kLeastNumbers / width + 1,
                static_cast<size_t>(at::get_num_threads()), [&](size_t first, size_t last) {
                  for (size_t row = first; row < last; ++row) {
                    const size_t channel = side_by_side ? 0 : row % channels;
                    float* numbers_out = to + row * width;
                    kernel({from + row * width, numbers_out, scale.data() + channel,
                            shift.data() + channel, width, !side_by_side});
                    if (activation.bend == Bend::kNone) continue;
                    finish_rows(activation, {numbers_out, nullptr, numbers_out, 1, width, 0});
                  }
                });
  return out;
}

}  // namespace fcp
