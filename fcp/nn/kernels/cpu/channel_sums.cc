#include "fcp/nn/kernels/cpu/channel_sums.h"

#include <algorithm>

#include <ATen/Parallel.h>
#include <torch/utils.h>

#include "fcp/base/lanes.h"
#include "fcp/base/parallel.h"

namespace fcp {
namespace {

// Sums of `channels` numbers at `places` places: eight sums side by side as in sum_rows.
template <typename Floats>
FCP_KERNEL void sum_places(const float* in, size_t places, size_t channels, float* out) {
  typedef typename Floats::Type Vector;
  constexpr size_t kStep = kFloatsIn<Floats>;
  for (size_t channel = 0; channel < channels; channel += kStep) {
    const size_t count = std::min(kStep, channels - channel);
    float edge[kStep] = {};
    Vector parts[8] = {};
    const float* from = in + channel;
    for (size_t place = 0; place < places; place += 8) {
#pragma GCC unroll 8
      for (size_t i = 0; i < 8; ++i) {
        if (place + i >= places) break;
        const float* at = from + (place + i) * channels;
        if (count < kStep) std::copy_n(at, count, edge);
        parts[i] += *floats<Floats>(count < kStep ? edge : at);
      }
    }
    const Vector sum = ((parts[0] + parts[4]) + (parts[2] + parts[6])) +
                       ((parts[1] + parts[5]) + (parts[3] + parts[7]));
    if (count < kStep) {
      *floats<Floats>(edge) = sum;
      std::copy_n(edge, count, out + channel);
    } else {
      *floats<Floats>(out + channel) = sum;
    }
  }
}

using SumKernel = void (*)(const float*, size_t, size_t, float*);
FCP_AVX512 void sum_avx512(const float* in, size_t places, size_t channels, float* out) {
  sum_places<Floats16>(in, places, channels, out);
}
FCP_AVX2 void sum_avx2(const float* in, size_t places, size_t channels, float* out) {
  sum_places<Floats8>(in, places, channels, out);
}
void sum_plain(const float* in, size_t places, size_t channels, float* out) {
  sum_places<Floats4>(in, places, channels, out);
}

}  // namespace

bool channels_lie_last(const torch::Tensor& x) {
  return x.dim() == 4 && !x.is_contiguous() && x.is_contiguous(at::MemoryFormat::ChannelsLast);
}

torch::Tensor channel_sums(const torch::Tensor& x) {
  const torch::Tensor in = x.detach().contiguous(at::MemoryFormat::ChannelsLast);
  torch::Tensor sums = torch::empty({x.size(0), x.size(1), 1, 1}, x.options());
  const size_t channels = static_cast<size_t>(x.size(1)),
               places = static_cast<size_t>(x.size(2) * x.size(3));
  const int width = simd_width();
  const SumKernel kernel = width == 512 ? sum_avx512 : width == 256 ? sum_avx2 : sum_plain;
  const size_t least = (size_t{1} << 17) / (places * channels + 1) + 1;
  parallel_rows(static_cast<size_t>(x.size(0)), least, static_cast<size_t>(at::get_num_threads()),
                [&](size_t first, size_t last) {
                  for (size_t row = first; row < last; ++row) {
                    kernel(in.data_ptr<float>() + row * places * channels, places, channels,
                           sums.data_ptr<float>() + row * channels);
                  }
                });
  return sums;
}

}  // namespace fcp
