#include "fcp/nn/kernels/cpu/channel_scale.h"

#include <algorithm>
#include <cmath>

#include <ATen/Parallel.h>
#include <torch/utils.h>

#include "fcp/base/lanes.h"
#include "fcp/base/parallel.h"

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

using ScaleKernel = void (*)(const ScaleWork&);
ScaleKernel scale_kernel() {
  const int width = simd_width();
  return width == 512 ? scale_avx512 : width == 256 ? scale_avx2 : scale_plain;
}

constexpr size_t kLeastNumbers = size_t{1} << 16;  // below, a thread costs more than it does

}  // namespace

std::shared_ptr<const ChannelLines> LineCache::lines(const std::vector<torch::Tensor>& statistics,
                                                     double epsilon) {
  const std::lock_guard lock(mutex_);
  bool known = sources_.size() == statistics.size() && epsilon_ == epsilon;
  for (size_t i = 0; known && i < statistics.size(); ++i) known = sources_[i].is(statistics[i]);
  if (known) return lines_;
  std::vector<torch::Tensor> four;
  sources_.clear();
  for (const torch::Tensor& each : statistics) {
    four.push_back(each.contiguous());
    sources_.emplace_back(each);
  }
  const auto at = [&](size_t which, size_t channel) {
    return static_cast<double>(four[which].data_ptr<float>()[channel]);
  };
  auto made = std::make_shared<ChannelLines>();
  for (size_t c = 0; c < static_cast<size_t>(four[0].size(0)); ++c) {
    const double a = at(0, c) / std::sqrt(at(3, c) + epsilon);
    made->scale.push_back(static_cast<float>(a));
    made->shift.push_back(static_cast<float>(at(1, c) - at(2, c) * a));
  }
  epsilon_ = epsilon;
  lines_ = made;
  return lines_;
}

torch::Tensor scaled_channels(const torch::Tensor& x, const ChannelLines& lines,
                              const FusedActivation& activation) {
  const bool side_by_side = channels_lie_last(x);
  const torch::Tensor in = side_by_side ? x.detach() : x.detach().contiguous();
  torch::Tensor out = torch::empty_like(in);
  if (out.numel() == 0) return out;
  const size_t channels = lines.scale.size(), numbers = static_cast<size_t>(x.numel());
  const size_t width =
      side_by_side ? channels : numbers / (static_cast<size_t>(x.size(0)) * channels);
  const float* from = in.data_ptr<float>();
  float* to = out.data_ptr<float>();
  const ScaleKernel kernel = scale_kernel();
  parallel_rows(numbers / width, kLeastNumbers / width + 1,
                static_cast<size_t>(at::get_num_threads()), [&](size_t first, size_t last) {
                  for (size_t row = first; row < last; ++row) {
                    const size_t channel = side_by_side ? 0 : row % channels;
                    float* row_out = to + row * width;
                    kernel({from + row * width, row_out, lines.scale.data() + channel,
                            lines.shift.data() + channel, width, !side_by_side});
                    if (activation.kind == ActivationKind::kNone) continue;
                    epilogue_rows(activation, {row_out, nullptr, row_out, 1, width, 0});
                  }
                });
  return out;
}

bool join_side_by_side(const std::vector<torch::Tensor>& parts) {
  const torch::Tensor& first = parts[0];
  return std::all_of(parts.begin(), parts.end(), [&](const torch::Tensor& part) {
    return part.is_cpu() && part.scalar_type() == torch::kFloat && channels_lie_last(part) &&
           part.size(0) == first.size(0) && part.size(2) == first.size(2) &&
           part.size(3) == first.size(3);
  });
}

torch::Tensor joined_channels(const std::vector<torch::Tensor>& parts, const ChannelLines* lines,
                              const FusedActivation& activation) {
  std::vector<int64_t> shape = parts[0].sizes().vec();
  shape[1] = 0;
  for (const torch::Tensor& part : parts) shape[1] += part.size(1);
  torch::Tensor out = torch::empty(shape, parts[0].options(), at::MemoryFormat::ChannelsLast);
  if (out.numel() == 0) return out;
  const auto channels = static_cast<size_t>(shape[1]);
  const size_t places = static_cast<size_t>(out.numel()) / channels;
  const ScaleKernel kernel = scale_kernel();
  const auto join_place = [&](size_t place, float* to) {
    size_t channel = 0;
    for (const torch::Tensor& part : parts) {
      const auto count = static_cast<size_t>(part.size(1));
      const float* from = part.data_ptr<float>() + place * count;
      if (lines == nullptr) {
        std::copy_n(from, count, to + channel);
      } else {
        kernel({from, to + channel, lines->scale.data() + channel, lines->shift.data() + channel,
                count, false});
      }
      channel += count;
    }
  };
  parallel_rows(places, kLeastNumbers / channels + 1, static_cast<size_t>(at::get_num_threads()),
                [&](size_t first, size_t last) {
                  for (size_t place = first; place < last; ++place) {
                    float* to = out.data_ptr<float>() + place * channels;
                    join_place(place, to);
                    if (activation.kind == ActivationKind::kNone) continue;
                    epilogue_rows(activation, {to, nullptr, to, 1, channels, 0});
                  }
                });
  return out;
}

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
