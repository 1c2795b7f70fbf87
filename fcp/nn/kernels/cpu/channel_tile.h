// The innermost loops of channel_windows.h: windows over a few places and channels at a time, in
// registers. Written once, for the vectors of any processor; channel_windows.cc compiles them for
// each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "fcp/base/lanes.h"

namespace fcp {

// Vectors of bytes beside those of lanes.h; only largest numbers are taken of them.
template <typename Byte>
struct Bytes32 {
  typedef Byte Type __attribute__((vector_size(32), aligned(1), may_alias));
};
template <typename Byte>
struct Bytes16 {
  typedef Byte Type __attribute__((vector_size(16), aligned(1), may_alias));
};
template <typename Some>
using NumberOf = std::remove_cvref_t<decltype(std::declval<typename Some::Type&>()[0])>;
template <typename Some>
constexpr size_t kNumbersIn = sizeof(typename Some::Type) / sizeof(NumberOf<Some>);
template <typename Some>
FCP_KERNEL typename Some::Type* numbers(NumberOf<Some>* at) {
  return reinterpret_cast<typename Some::Type*>(at);
}
template <typename Some>
FCP_KERNEL const typename Some::Type* numbers(const NumberOf<Some>* at) {
  return reinterpret_cast<const typename Some::Type*>(at);
}

// Where a tap's channels lie from the beginning of the window, and its weights.
struct ChannelTap {
  ptrdiff_t at, weight;
};

// Windows of places beside each other, all taps of which lie within the image.
template <typename Number>
struct ChannelTile {
  const Number* at;      // the first place's window
  ptrdiff_t place_step;  // from the window of a place to that of the next
  const ChannelTap* taps;
  size_t count;          // of taps
  const float* weights;  // null: the largest number
  const Number* start;   // of the sums
  Number* out;
  ptrdiff_t out_step;  // from place to place
};

// kParts vectors of channels from `channel` on, at kPlaces places.
template <typename Floats, size_t kPlaces, size_t kParts, bool kLargest>
FCP_KERNEL void channel_tile(const ChannelTile<NumberOf<Floats>>& tile, size_t channel) {
  typedef typename Floats::Type Vector;
  constexpr size_t kStep = kNumbersIn<Floats>;
  Vector sum[kPlaces][kParts];
  const NumberOf<Floats>* at[kPlaces];
#pragma GCC unroll 8
  for (size_t i = 0; i < kPlaces; ++i) {
    at[i] = tile.at + static_cast<ptrdiff_t>(i) * tile.place_step + channel;
#pragma GCC unroll 8
    for (size_t p = 0; p < kParts; ++p) {
      sum[i][p] = *numbers<Floats>(tile.start + channel + p * kStep);
    }
  }
  for (size_t tap = 0; tap < tile.count; ++tap) {
    const ptrdiff_t offset = tile.taps[tap].at;
    const float* weights = kLargest ? nullptr : tile.weights + tile.taps[tap].weight + channel;
#pragma GCC unroll 8
    for (size_t p = 0; p < kParts; ++p) {
      [[maybe_unused]] Vector weight = {};
      if constexpr (!kLargest) weight = *floats<Floats>(weights + p * kStep);
#pragma GCC unroll 8
      for (size_t i = 0; i < kPlaces; ++i) {
        const Vector x = *numbers<Floats>(at[i] + offset + p * kStep);
        if constexpr (kLargest) {
          sum[i][p] = x > sum[i][p] ? x : x == x ? sum[i][p] : x;  // NaN stays
        } else {
          sum[i][p] += weight * x;
        }
      }
    }
  }
#pragma GCC unroll 8
  for (size_t i = 0; i < kPlaces; ++i) {
#pragma GCC unroll 8
    for (size_t p = 0; p < kParts; ++p) {
      NumberOf<Floats>* out = tile.out + static_cast<ptrdiff_t>(i) * tile.out_step + channel;
      *numbers<Floats>(out + p * kStep) = sum[i][p];
    }
  }
}

// Fewer channels than a vector has, at one place.
template <typename Floats, bool kLargest>
FCP_KERNEL void channel_rest(const ChannelTile<NumberOf<Floats>>& tile, size_t channel,
                             size_t count) {
  typedef typename Floats::Type Vector;
  constexpr size_t kStep = kNumbersIn<Floats>;
  NumberOf<Floats> edge[kStep] = {};
  Vector sum = *numbers<Floats>(tile.start + channel);
  for (size_t tap = 0; tap < tile.count; ++tap) {
    const NumberOf<Floats>* from = tile.at + tile.taps[tap].at + channel;
    for (size_t i = 0; i < count; ++i) edge[i] = from[i];
    const Vector x = *numbers<Floats>(edge);
    if constexpr (kLargest) {
      sum = x > sum ? x : x == x ? sum : x;
    } else {
      sum += *floats<Floats>(tile.weights + tile.taps[tap].weight + channel) * x;
    }
  }
  *numbers<Floats>(edge) = sum;
  for (size_t i = 0; i < count; ++i) tile.out[channel + i] = edge[i];
}

// All channels at one place, eight vectors at a time.
template <typename Floats, bool kLargest>
FCP_KERNEL void channel_place(const ChannelTile<NumberOf<Floats>>& tile, size_t first,
                              size_t channels) {
  constexpr size_t kStep = kNumbersIn<Floats>;
  size_t channel = first;
  for (; channel + 8 * kStep <= channels; channel += 8 * kStep) {
    channel_tile<Floats, 1, 8, kLargest>(tile, channel);
  }
  for (; channel + kStep <= channels; channel += kStep) {
    channel_tile<Floats, 1, 1, kLargest>(tile, channel);
  }
  if (channel < channels) channel_rest<Floats, kLargest>(tile, channel, channels - channel);
}

// kParts vectors of channels from `channel` on at 3 to 6 places.
template <typename Floats, size_t kParts>
FCP_KERNEL void channel_some(const ChannelTile<NumberOf<Floats>>& tile, size_t channel,
                             size_t places) {
  if (places == 6) channel_tile<Floats, 6, kParts, false>(tile, channel);
  if (places == 5) channel_tile<Floats, 5, kParts, false>(tile, channel);
  if (places == 4) channel_tile<Floats, 4, kParts, false>(tile, channel);
  if (places == 3) channel_tile<Floats, 3, kParts, false>(tile, channel);
}

// Channels [first, last) at `places` places: six at a time, never fewer than three. Returns where
// whole vectors end.
template <typename Floats>
FCP_KERNEL size_t channel_places(ChannelTile<NumberOf<Floats>> tile, size_t first, size_t last,
                                 size_t places) {
  constexpr size_t kStep = kNumbersIn<Floats>;
  size_t channel = first;
  for (size_t tiles = (places + 5) / 6; tiles > 0; --tiles) {
    const size_t some = (places + tiles - 1) / tiles;
    channel = first;
    for (; channel + 2 * kStep <= last; channel += 2 * kStep) {
      channel_some<Floats, 2>(tile, channel, some);
    }
    for (; channel + kStep <= last; channel += kStep) channel_some<Floats, 1>(tile, channel, some);
    tile.at += static_cast<ptrdiff_t>(some) * tile.place_step;
    tile.out += static_cast<ptrdiff_t>(some) * tile.out_step;
    places -= some;
  }
  return channel;
}

// Filters of all channels at `places` places: as many channels at a time as have their weights in
// half of the first cache, so that images are read in the order in which they lie.
template <typename Floats>
FCP_KERNEL void filter_places(ChannelTile<NumberOf<Floats>> tile, size_t channels, size_t places) {
  constexpr size_t kStep = kNumbersIn<Floats>, kCachedWeights = 1 << 12;
  const size_t wide = kCachedWeights / (tile.count + 1) / (2 * kStep) * (2 * kStep) + 2 * kStep;
  size_t channel = 0;
  for (size_t first = 0; places >= 3 && first < channels; first += wide) {
    channel = channel_places<Floats>(tile, first, std::min(channels, first + wide), places);
  }
  if (channel == channels) return;
  for (size_t i = 0; i < places; ++i) {
    channel_place<Floats, false>(tile, channel, channels);
    tile.at += tile.place_step;
    tile.out += tile.out_step;
  }
}

// Four places at a time, because a window has few taps, and one place begins no sooner than the one
// before has ended.
template <typename Floats>
FCP_KERNEL void largest_of_places(ChannelTile<NumberOf<Floats>> tile, size_t channels,
                                  size_t places) {
  constexpr size_t kStep = kNumbersIn<Floats>;
  for (; places >= 4 && channels % kStep == 0; places -= 4) {
    size_t channel = 0;
    for (; channel + 2 * kStep <= channels; channel += 2 * kStep) {
      channel_tile<Floats, 4, 2, true>(tile, channel);
    }
    if (channel < channels) channel_tile<Floats, 4, 1, true>(tile, channel);
    tile.at += 4 * tile.place_step;
    tile.out += 4 * tile.out_step;
  }
  for (size_t i = 0; i < places; ++i) {
    channel_place<Floats, true>(tile, 0, channels);
    tile.at += tile.place_step;
    tile.out += tile.out_step;
  }
}

}  // namespace fcp
