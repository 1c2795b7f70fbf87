#include "fcp/network/channel_windows.h"

#include <algorithm>
#include <limits>

#include <ATen/Parallel.h>
#include <torch/utils.h>

#include "fcp/base/lanes.h"
#include "fcp/base/parallel.h"

namespace fcp {
namespace {

constexpr double kWindowThreadWork = 1 << 21;  // products below which a thread costs more

size_t as_size(int64_t n) { return static_cast<size_t>(n); }

// Sixteen channels of one image.
struct ChannelBlock {
  size_t height, width, channels;  // of the input, all channels
  size_t out_height, out_width;
  size_t kernel_y, kernel_x, stride_y, stride_x, begin_y, begin_x;

  size_t padded_width() const { return (out_width - 1) * stride_x + kernel_x; }
  size_t touched_rows(size_t rows) const { return (rows - 1) * stride_y + kernel_y; }
  // Rows of the output at a time: what they touch fits the second cache.
  size_t rows_at_once() const {
    constexpr size_t kMostNumbers = 1 << 15;
    const size_t fit = kMostNumbers / (padded_width() * kLanes);
    const size_t rows = fit > kernel_y ? (fit - kernel_y) / stride_y + 1 : 1;
    return std::min(rows, out_height);
  }
};

ChannelBlock block_of(const torch::Tensor& x, torch::IntArrayRef kernel, const ConvPlan& plan) {
  return {as_size(x.size(2)),      as_size(x.size(3)),       as_size(x.size(1)),
          as_size(plan.places[0]), as_size(plan.places[1]),  as_size(kernel[0]),
          as_size(kernel[1]),      as_size(plan.strides[0]), as_size(plan.strides[1]),
          as_size(plan.begins[0]), as_size(plan.begins[1])};
}

// The rows that `rows` rows of the output from `first` on touch; `count` of the sixteen channels
// exist. What is in `to` left and right of the image stays there: the padding.
void copy_channels(const ChannelBlock& block, const float* in, size_t first, size_t rows,
                   size_t count, float padding, float* to) {
  const size_t room = block.padded_width() - std::min(block.padded_width(), block.begin_x);
  const size_t places = std::min(block.width, room);
  for (size_t i = 0; i < block.touched_rows(rows); ++i) {
    const size_t y = first * block.stride_y + i;  // in the padded image
    float* row = to + (i * block.padded_width() + block.begin_x) * kLanes;
    if (y < block.begin_y || y >= block.begin_y + block.height) {
      std::fill(row, row + places * kLanes, padding);
      continue;
    }
    const float* from = in + (y - block.begin_y) * block.width * block.channels;
    for (size_t x = 0; x < places; ++x, from += block.channels, row += kLanes) {
      if (count == kLanes) {
        *lanes(row) = *lanes(from);
      } else {
        std::copy_n(from, count, row);
      }
    }
  }
}

struct ChannelWork {
  const float* const* windows;  // where the window of each place begins
  size_t places;
  const size_t* offsets;  // of the window's places from its first
  size_t taps;
  const float* weights;  // [taps][16]; null: the largest number
  const float* start;    // [16]
  float* out;            // [places][16]
};

// Windows of kPlaces places side by side.
template <typename Floats, size_t kPlaces, bool kLargest>
FCP_KERNEL void channel_tile(const ChannelWork& work, size_t place) {
  typedef typename Floats::Type Vector;
  constexpr size_t kStep = kFloatsIn<Floats>, kParts = kLanes / kStep;
  Vector sum[kPlaces][kParts];
  const float* at[kPlaces];
#pragma GCC unroll 12
  for (size_t i = 0; i < kPlaces; ++i) {
    at[i] = work.windows[place + i];
#pragma GCC unroll 4
    for (size_t p = 0; p < kParts; ++p) sum[i][p] = *floats<Floats>(work.start + p * kStep);
  }
  for (size_t tap = 0; tap < work.taps; ++tap) {
    const size_t offset = work.offsets[tap];
    Vector weight[kParts];
#pragma GCC unroll 4
    for (size_t p = 0; p < kParts; ++p) {
      weight[p] = kLargest ? Vector{} : *floats<Floats>(work.weights + tap * kLanes + p * kStep);
    }
#pragma GCC unroll 12
    for (size_t i = 0; i < kPlaces; ++i) {
#pragma GCC unroll 4
      for (size_t p = 0; p < kParts; ++p) {
        const Vector x = *floats<Floats>(at[i] + offset + p * kStep);
        if constexpr (kLargest) {
          sum[i][p] = x > sum[i][p] ? x : x == x ? sum[i][p] : x;  // NaN stays
        } else {
          sum[i][p] += weight[p] * x;
        }
      }
    }
  }
#pragma GCC unroll 12
  for (size_t i = 0; i < kPlaces; ++i) {
#pragma GCC unroll 4
    for (size_t p = 0; p < kParts; ++p) {
      *floats<Floats>(work.out + (place + i) * kLanes + p * kStep) = sum[i][p];
    }
  }
}

template <typename Floats, size_t kPlaces, bool kLargest>
FCP_KERNEL void channel_tiles(const ChannelWork& work) {
  size_t place = 0;
  for (; place + kPlaces <= work.places; place += kPlaces) {
    channel_tile<Floats, kPlaces, kLargest>(work, place);
  }
  for (; place < work.places; ++place) channel_tile<Floats, 1, kLargest>(work, place);
}

FCP_AVX512 void taps_avx512(const ChannelWork& work) { channel_tiles<Floats16, 12, false>(work); }
FCP_AVX2 void taps_avx2(const ChannelWork& work) { channel_tiles<Floats8, 6, false>(work); }
void taps_plain(const ChannelWork& work) { channel_tiles<Floats4, 3, false>(work); }
FCP_AVX512 void most_avx512(const ChannelWork& work) { channel_tiles<Floats16, 12, true>(work); }
FCP_AVX2 void most_avx2(const ChannelWork& work) { channel_tiles<Floats8, 6, true>(work); }
void most_plain(const ChannelWork& work) { channel_tiles<Floats4, 3, true>(work); }

// Where sixteen channels' numbers of all places go, with what follows them.
struct ChannelTarget {
  float* out;
  const float* added;
  size_t channels, count;
};

// Rows of places are summed into lines of 16 channels, and go from there to their place.
class ChannelWalk {
 public:
  ChannelWalk(const ChannelBlock& block, bool largest, const Bending& activation)
      : block_(block),
        rows_(block.rows_at_once()),
        largest_(largest),
        padding_(largest ? -std::numeric_limits<float>::infinity() : 0.0f),
        activation_(activation),
        padded_(block.touched_rows(rows_) * block.padded_width() * kLanes, padding_),
        lines_(rows_ * block.out_width * kLanes) {
    for (size_t y = 0; y < block.kernel_y; ++y) {
      for (size_t x = 0; x < block.kernel_x; ++x) {
        offsets_.push_back((y * block.padded_width() + x) * kLanes);
      }
    }
    for (size_t y = 0; y < rows_; ++y) {
      const float* row = padded_.data() + y * block.stride_y * block.padded_width() * kLanes;
      for (size_t x = 0; x < block.out_width; ++x) {
        windows_.push_back(row + x * block.stride_x * kLanes);
      }
    }
    const int width = simd_width();
    kernel_ = largest ? (width == 512   ? most_avx512
                         : width == 256 ? most_avx2
                                        : most_plain)
                      : (width == 512   ? taps_avx512
                         : width == 256 ? taps_avx2
                                        : taps_plain);
  }

  void walk(const float* in, const float* weights, const float* start,
            const ChannelTarget& target) {
    for (size_t y = 0; y < block_.out_height; y += rows_) {
      const size_t rows = std::min(rows_, block_.out_height - y);
      const size_t places = rows * block_.out_width;
      copy_channels(block_, in, y, rows, target.count, padding_, padded_.data());
      kernel_({windows_.data(), places, offsets_.data(), offsets_.size(),
               largest_ ? nullptr : weights, start, lines_.data()});
      store(places, y * block_.out_width, target);
    }
  }

 private:
  void store(size_t places, size_t first, const ChannelTarget& target) {
    const bool bends = activation_.bend != Bend::kNone;
    float* sums = lines_.data();
    if (bends && target.added == nullptr) {
      finish_rows(activation_, {sums, nullptr, sums, 1, places * kLanes, 0});
    }
    float* out = target.out + first * target.channels;
    for (size_t i = 0; i < places; ++i) {
      if (target.count == kLanes) {
        *lanes(out + i * target.channels) = *lanes(sums + i * kLanes);
      } else {
        std::copy_n(sums + i * kLanes, target.count, out + i * target.channels);
      }
    }
    if (target.added == nullptr) return;
    const float* added = target.added + first * target.channels;
    finish_rows(activation_, {out, added, out, places, target.count, target.channels});
  }

  ChannelBlock block_;
  size_t rows_;
  bool largest_;
  float padding_;
  Bending activation_;
  FloatRows padded_, lines_;
  std::vector<const float*> windows_;
  std::vector<size_t> offsets_;
  void (*kernel_)(const ChannelWork&);
};

// weights [C / 16][taps][16] and start [C], padded to whole blocks of channels; or null.
torch::Tensor walk_channels(const torch::Tensor& x, const ChannelBlock& block, const float* weights,
                            const float* start, const Finish& finish) {
  const torch::Tensor in = x.contiguous(at::MemoryFormat::ChannelsLast);
  torch::Tensor out = torch::empty({x.size(0), x.size(1), static_cast<int64_t>(block.out_height),
                                    static_cast<int64_t>(block.out_width)},
                                   x.options(), at::MemoryFormat::ChannelsLast);
  if (out.numel() == 0) return out;
  const torch::Tensor added = finish.added.defined()
                                  ? finish.added.contiguous(at::MemoryFormat::ChannelsLast)
                                  : torch::Tensor();
  const size_t channels = block.channels, blocks = (channels + kLanes - 1) / kLanes;
  const size_t taps = block.kernel_y * block.kernel_x;
  const size_t places = block.out_height * block.out_width;
  const FloatRows lowest(kLanes, -std::numeric_limits<float>::infinity());
  const double work = static_cast<double>(places * taps * kLanes);
  parallel_rows(
      blocks * as_size(x.size(0)), static_cast<size_t>(kWindowThreadWork / work) + 1,
      static_cast<size_t>(at::get_num_threads()), [&](size_t first, size_t last) {
        ChannelWalk walk(block, weights == nullptr, finish.activation);
        for (size_t i = first; i < last; ++i) {
          const size_t row = i / blocks, channel = i % blocks * kLanes;
          const size_t to = row * places * channels + channel;
          const float* own = weights == nullptr ? nullptr : weights + channel * taps;
          walk.walk(
              in.data_ptr<float>() + row * block.height * block.width * channels + channel, own,
              start == nullptr ? lowest.data() : start + channel,
              {out.data_ptr<float>() + to, added.defined() ? added.data_ptr<float>() + to : nullptr,
               channels, std::min(kLanes, channels - channel)});
        }
      });
  return out;
}

}  // namespace

std::shared_ptr<const FloatRows> ChannelFilters::packed(const torch::Tensor& w) {
  const std::lock_guard lock(mutex_);
  if (source_.is(w)) return packed_;
  const torch::Tensor weight = w.contiguous();
  const size_t channels = as_size(w.size(0)), taps = as_size(w.numel() / w.size(0));
  auto filters = std::make_shared<FloatRows>(taps * padded(channels));
  for (size_t channel = 0; channel < channels; ++channel) {
    float* to = filters->data() + channel / kLanes * kLanes * taps + channel % kLanes;
    const float* from = weight.data_ptr<float>() + channel * taps;
    for (size_t tap = 0; tap < taps; ++tap) to[tap * kLanes] = from[tap];
  }
  packed_ = filters;
  source_ = KnownTensor(w);
  return packed_;
}

torch::Tensor depthwise_channels(const torch::Tensor& x, const torch::Tensor& w,
                                 const torch::Tensor& bias, const ConvPlan& plan,
                                 ChannelFilters& filters, const Finish& finish) {
  const ChannelBlock block = block_of(x, w.sizes().slice(2), plan);
  FloatRows start(padded(block.channels));
  if (bias.defined()) std::copy_n(bias.data_ptr<float>(), block.channels, start.data());
  return walk_channels(x, block, filters.packed(w)->data(), start.data(), finish);
}

torch::Tensor largest_in_channel_windows(const torch::Tensor& x, const std::vector<int64_t>& kernel,
                                         const ConvPlan& plan) {
  return walk_channels(x, block_of(x, kernel, plan), nullptr, nullptr, {});
}

}  // namespace fcp
