#include "fcp/nn/kernels/cpu/channel_windows.h"

#include <algorithm>
#include <limits>

#include <ATen/Parallel.h>
#include <torch/utils.h>

#include "fcp/base/parallel.h"
#include "fcp/nn/kernels/cpu/channel_tile.h"

namespace fcp {
namespace {

constexpr double kWindowThreadWork = 1 << 21;  // products below which a thread costs more
constexpr auto kSideBySide = at::MemoryFormat::ChannelsLast;

size_t as_size(int64_t n) { return static_cast<size_t>(n); }

FCP_AVX512 void filter_places_avx512(const ChannelTile<float>& tile, size_t channels,
                                     size_t places) {
  // What is left of sixteen may fill a vector of eight.
  const size_t whole = channels % 16 >= 8 ? channels / 16 * 16 : channels;
  filter_places<Floats16>(tile, whole, places);
  if (whole == channels) return;
  ChannelTile<float> rest = tile;
  rest.at += whole;
  rest.weights += whole;
  rest.start += whole;
  rest.out += whole;
  filter_places<Floats8>(rest, channels - whole, places);
}
FCP_AVX2 void filter_places_avx2(const ChannelTile<float>& tile, size_t channels, size_t places) {
  filter_places<Floats8>(tile, channels, places);
}
void filter_places_plain(const ChannelTile<float>& tile, size_t channels, size_t places) {
  filter_places<Floats4>(tile, channels, places);
}
FCP_AVX2 void largest_places_avx2(const ChannelTile<float>& tile, size_t channels, size_t places) {
  largest_of_places<Floats8>(tile, channels, places);
}
void largest_places_plain(const ChannelTile<float>& tile, size_t channels, size_t places) {
  largest_of_places<Floats4>(tile, channels, places);
}
template <typename Byte>
FCP_AVX2 void largest_bytes_avx2(const ChannelTile<Byte>& tile, size_t channels, size_t places) {
  if (channels % 32 == 0) return largest_of_places<Bytes32<Byte>>(tile, channels, places);
  largest_of_places<Bytes16<Byte>>(tile, channels, places);
}
template <typename Byte>
void largest_bytes_plain(const ChannelTile<Byte>& tile, size_t channels, size_t places) {
  largest_of_places<Bytes16<Byte>>(tile, channels, places);
}

template <typename Number>
using PlacesKernel = void (*)(const ChannelTile<Number>&, size_t channels, size_t places);
template <typename Number>
PlacesKernel<Number> kernel_for(bool largest) {
  const int width = simd_width();
  if constexpr (sizeof(Number) == 1) {
    return width >= 256 ? largest_bytes_avx2<Number> : largest_bytes_plain<Number>;
  } else {
    // g++ 12 takes choices between vectors of sixteen apart: those of eight serve.
    if (width == 512 && !largest) return filter_places_avx512;
    if (width >= 256) return largest ? largest_places_avx2 : filter_places_avx2;
    return largest ? largest_places_plain : filter_places_plain;
  }
}

// One axis of an image and the window on it.
struct WindowAxis {
  ptrdiff_t size, places, kernel, stride, begin;

  WindowAxis(const torch::Tensor& x, torch::IntArrayRef window, const ConvPlan& plan, size_t axis)
      : size(x.size(static_cast<int64_t>(axis) + 2)),
        places(plan.places[axis]),
        kernel(window[axis]),
        stride(plan.strides[axis]),
        begin(plan.begins[axis]) {}

  // The taps [first, last) of a place's window that lie within the image.
  ptrdiff_t first_tap(ptrdiff_t place) const {
    return std::clamp<ptrdiff_t>(begin - place * stride, 0, kernel);
  }
  ptrdiff_t last_tap(ptrdiff_t place) const {
    return std::clamp<ptrdiff_t>(size + begin - place * stride, first_tap(place), kernel);
  }
  bool inside(ptrdiff_t place) const { return first_tap(place) == 0 && last_tap(place) == kernel; }
};

// Rows of places of one image.
template <typename Number>
class ChannelWalk {
 public:
  ChannelWalk(const WindowAxis& y, const WindowAxis& x, size_t channels,
              const ChannelWeights* weights)
      : y_(y),
        x_(x),
        channels_(channels),
        weights_(weights),
        kernel_(kernel_for<Number>(!weights)) {
    while (left_ < x.places && !x.inside(left_)) ++left_;
    right_ = left_;
    while (right_ < x.places && x.inside(right_)) ++right_;
  }

  void walk(const Number* image, ptrdiff_t row, const Number* start, Number* out) {
    const auto channels = static_cast<ptrdiff_t>(channels_);
    for (ptrdiff_t place = 0; place < x_.places;) {
      const ptrdiff_t places = place == left_ && left_ < right_ ? right_ - left_ : 1;
      list_taps(row, place);
      const ptrdiff_t y = row * y_.stride - y_.begin, x = place * x_.stride - x_.begin;
      const ChannelTile<Number> tile = {image + (y * x_.size + x) * channels,
                                        x_.stride * channels,
                                        taps_.data(),
                                        taps_.size(),
                                        weights_ == nullptr ? nullptr : weights_->numbers.data(),
                                        start,
                                        out + place * channels,
                                        channels};
      kernel_(tile, channels_, static_cast<size_t>(places));
      place += places;
    }
  }

 private:
  // Of the window at a place, those within the image.
  void list_taps(ptrdiff_t row, ptrdiff_t place) {
    taps_.clear();
    const auto channels = static_cast<ptrdiff_t>(channels_);
    const auto step = weights_ == nullptr ? 0 : static_cast<ptrdiff_t>(weights_->step);
    for (ptrdiff_t ky = y_.first_tap(row); ky < y_.last_tap(row); ++ky) {
      for (ptrdiff_t kx = x_.first_tap(place); kx < x_.last_tap(place); ++kx) {
        taps_.push_back({(ky * x_.size + kx) * channels, (ky * x_.kernel + kx) * step});
      }
    }
  }

  WindowAxis y_, x_;
  size_t channels_;
  const ChannelWeights* weights_;
  PlacesKernel<Number> kernel_;
  ptrdiff_t left_ = 0, right_ = 0;  // between them all windows lie in the image, left to right
  std::vector<ChannelTap> taps_;
};

template <typename Number>
using ChannelRow = std::vector<Number, LineAllocator<Number>>;

// start [C], padded to whole vectors; weights may be null.
template <typename Number>
torch::Tensor walk_channels(const torch::Tensor& x, torch::IntArrayRef window, const ConvPlan& plan,
                            const ChannelWeights* weights, const ChannelRow<Number>& start,
                            const Epilogue& epilogue) {
  const torch::Tensor in = x.contiguous(kSideBySide);
  torch::Tensor out = torch::empty({x.size(0), x.size(1), plan.places[0], plan.places[1]},
                                   x.options(), kSideBySide);
  if (out.numel() == 0) return out;
  const torch::Tensor added =
      epilogue.added.defined() ? epilogue.added.contiguous(kSideBySide) : torch::Tensor();
  const WindowAxis down(x, window, plan, 0), across(x, window, plan, 1);
  const size_t channels = as_size(x.size(1)), rows = as_size(plan.places[0]);
  const size_t image = as_size(x.size(2) * x.size(3)) * channels;
  const size_t numbers = as_size(plan.places[1]) * channels;  // of a row
  const double work = static_cast<double>(numbers) * static_cast<double>(window[0] * window[1]);
  parallel_rows(rows * as_size(x.size(0)), static_cast<size_t>(kWindowThreadWork / work) + 1,
                static_cast<size_t>(at::get_num_threads()), [&](size_t first, size_t last) {
                  ChannelWalk<Number> walk(down, across, channels, weights);
                  for (size_t i = first; i < last; ++i) {
                    Number* to = out.data_ptr<Number>() + i * numbers;
                    walk.walk(in.data_ptr<Number>() + i / rows * image,
                              static_cast<ptrdiff_t>(i % rows), start.data(), to);
                    if constexpr (sizeof(Number) == sizeof(float)) {
                      const float* more =
                          added.defined() ? added.data_ptr<float>() + i * numbers : nullptr;
                      if (more == nullptr && epilogue.activation.kind == ActivationKind::kNone)
                        continue;
                      epilogue_rows(epilogue.activation, {to, more, to, 1, numbers, 0});
                    }
                  }
                });
  return out;
}

template <typename Number>
torch::Tensor largest_numbers(const torch::Tensor& x, const std::vector<int64_t>& kernel,
                              const ConvPlan& plan, Number least) {
  const ChannelRow<Number> lowest(padded(as_size(x.size(1))), least);
  return walk_channels<Number>(x, kernel, plan, nullptr, lowest, {});
}

}  // namespace

std::shared_ptr<const ChannelWeights> ChannelFilters::packed(const torch::Tensor& w) {
  const std::lock_guard lock(mutex_);
  if (source_.is(w)) return packed_;
  const torch::Tensor weight = w.contiguous();
  const size_t channels = as_size(w.size(0)), taps = as_size(w.numel() / w.size(0));
  auto filters = std::make_shared<ChannelWeights>();
  // An odd number of cache lines, so that a channel's taps do not meet in one place of a cache.
  filters->step = (padded(channels) / kLanes | 1) * kLanes;
  filters->numbers.resize(taps * filters->step);
  for (size_t channel = 0; channel < channels; ++channel) {
    const float* from = weight.data_ptr<float>() + channel * taps;
    for (size_t tap = 0; tap < taps; ++tap) {
      filters->numbers[tap * filters->step + channel] = from[tap];
    }
  }
  filters->finite = weight.isfinite().all().item<bool>();
  packed_ = filters;
  source_ = KnownTensor(w);
  return packed_;
}

torch::Tensor depthwise_channels(const torch::Tensor& x, const torch::Tensor& w,
                                 const torch::Tensor& bias, const ConvPlan& plan,
                                 const ChannelWeights& weights, const Epilogue& epilogue) {
  FloatRows start(padded(as_size(x.size(1))));
  if (bias.defined()) std::copy_n(bias.data_ptr<float>(), x.size(1), start.data());
  return walk_channels<float>(x, w.sizes().slice(2), plan, &weights, start, epilogue);
}

torch::Tensor largest_in_channel_windows(const torch::Tensor& x, const std::vector<int64_t>& kernel,
                                         const ConvPlan& plan) {
  if (x.scalar_type() == torch::kByte) return largest_numbers<uint8_t>(x, kernel, plan, 0);
  if (x.scalar_type() == torch::kChar) return largest_numbers<int8_t>(x, kernel, plan, -128);
  return largest_numbers<float>(x, kernel, plan, -std::numeric_limits<float>::infinity());
}

}  // namespace fcp
