// The innermost loops of dense_conv.h and byte_conv.h: windows of places beside each other times
// panels of filters, summed in registers. A window is `rows` rows of inputs that lie side by side,
// one every row_step, and the window of the next place begins place_step further, so that nothing
// is copied. Written once, for the vectors of any processor, and for float32 numbers, one product
// at a time, as for bytes, four at a time.
//
// A Kernel is a static class with
//   In, Inputs, kAtOnce             an input; those of a step along a row; how many these are
//   kMostPlaces                     of one tile
//   Weight, Vector, Out, Outs       what a panel is made of; sums; a result; results
//   load(at, x), add(x, w, sum)     the inputs of a step, and sum += x · w
//   End, finish(end, at, sum, out)  what becomes of the sums of the outputs from `at` on
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "fcp/base/lanes.h"
#include "fcp/nn/kernels/cpu/packed_product.h"

namespace fcp {

// Windows of places beside each other.
template <typename Kernel>
struct WindowRow {
  const typename Kernel::In* at;   // the first place's window
  ptrdiff_t place_step, row_step;  // inputs to the next place's window, to a window's next row
  size_t rows, steps;              // of a window, and along each of its rows
  typename Kernel::Out* out;       // of the first place; those of the next follow
  size_t outputs;                  // of each place
  size_t room;                     // from `out` on what may be written, but keeps nothing yet
};

// A row, and the panel that multiplies it.
template <typename Kernel>
struct WindowTile {
  WindowRow<Kernel> row;
  const typename Kernel::Weight* panel;
  size_t first, columns;  // outputs of the panel
  const typename Kernel::End* end;
};

// sum += windows · panel.
template <typename Kernel, size_t kPlaces, size_t kParts>
FCP_KERNEL void add_windows(const WindowTile<Kernel>& tile,
                            typename Kernel::Vector (*sum)[kParts]) {
  typedef typename Kernel::Vector Vector;
  constexpr size_t kPointers = (kPlaces + 3) / 4;  // one for four places: registers are few
  const Vector* w = reinterpret_cast<const Vector*>(tile.panel);
  const typename Kernel::In* first = tile.row.at;
  const ptrdiff_t step = tile.row.place_step;
  for (size_t row = 0; row < tile.row.rows; ++row, first += tile.row.row_step) {
    const typename Kernel::In* at[kPointers];
#pragma GCC unroll 4
    for (size_t i = 0; i < kPointers; ++i) at[i] = first + static_cast<ptrdiff_t>(4 * i) * step;
    for (size_t k = 0; k < tile.row.steps; ++k, w += kParts) {
      Vector column[kParts];
#pragma GCC unroll 4
      for (size_t part = 0; part < kParts; ++part) column[part] = w[part];
#pragma GCC unroll 16
      for (size_t i = 0; i < kPlaces; ++i) {
        typename Kernel::Inputs x = {};
        Kernel::load(at[i / 4] + static_cast<ptrdiff_t>(i % 4) * step, &x);
#pragma GCC unroll 4
        for (size_t part = 0; part < kParts; ++part) Kernel::add(&x, &column[part], &sum[i][part]);
      }
#pragma GCC unroll 4
      for (size_t i = 0; i < kPointers; ++i) at[i] += Kernel::kAtOnce;
    }
  }
}

// Whole vectors are written where there is room: what is beyond a place's last output belongs to
// the next place, which is written later.
template <typename Kernel, size_t kPlaces, size_t kParts>
FCP_KERNEL void window_places(const WindowTile<Kernel>& tile) {
  typedef typename Kernel::Vector Vector;
  typedef typename Kernel::Outs Outs;
  constexpr size_t kStep = sizeof(Vector) / sizeof(typename Kernel::Weight);
  Vector sum[kPlaces][kParts];
#pragma GCC unroll 16
  for (size_t i = 0; i < kPlaces; ++i) {
#pragma GCC unroll 4
    for (size_t part = 0; part < kParts; ++part) sum[i][part] = Vector{};
  }
  add_windows<Kernel, kPlaces, kParts>(tile, sum);
#pragma GCC unroll 16
  for (size_t i = 0; i < kPlaces; ++i) {
#pragma GCC unroll 4
    for (size_t part = 0; part < kParts; ++part) {
      const size_t at = i * tile.row.outputs + tile.first + part * kStep;
      Outs results;
      Kernel::finish(*tile.end, tile.first + part * kStep, &sum[i][part], &results);
      if (at + kStep <= tile.row.room) {
        *reinterpret_cast<Outs*>(tile.row.out + at) = results;
      } else {
        for (size_t j = 0; part * kStep + j < tile.columns && j < kStep; ++j) {
          tile.row.out[at + j] = results[j];
        }
      }
    }
  }
}

// The most places whose sums, by `parts` vectors each, fit the registers.
constexpr size_t most_places(bool many_registers, size_t parts) {
  constexpr size_t kMany[] = {14, 14, 8, 7}, kFew[] = {12, 6, 4, 3};
  return (many_registers ? kMany : kFew)[parts - 1];
}

// Kernel's loops for an instruction set, for which Set::run<Kernel, places, parts> is compiled.
template <typename Set, typename Kernel>
class WindowWalk {
 public:
  // All outputs of `places` places; the panels lie as PackedPanels has them. The last panel comes
  // first, because it may write into the next place.
  static void walk(WindowRow<Kernel> row, size_t places, const typename Kernel::Weight* panels,
                   const typename Kernel::End& end) {
    constexpr size_t kWide = kParts * kStep;
    const size_t outputs = row.outputs;
    size_t last = 0;  // where the last panel begins; all others are kWide
    while (last + panel_parts(outputs - last, kStep, kParts) * kStep < outputs) last += kWide;
    const size_t last_parts = panel_parts(outputs - last, kStep, kParts);
    const size_t most = most_of(last == 0 ? last_parts : std::max(last_parts, kParts));
    for (size_t tiles = (places + most - 1) / most; tiles > 0; --tiles) {
      const size_t some = (places + tiles - 1) / tiles;
      for (size_t first = last;; first -= kWide) {
        const size_t parts = first == last ? last_parts : kParts;
        kTables[parts - 1][some - 1]({row, panels + first * row.rows * row.steps, first,
                                      std::min(parts * kStep, outputs - first), &end});
        if (first == 0) break;
      }
      row.at += static_cast<ptrdiff_t>(some) * row.place_step;
      row.out += some * outputs;
      row.room -= some * outputs;
      places -= some;
    }
  }

 private:
  static constexpr size_t kStep = sizeof(typename Kernel::Vector) / sizeof(typename Kernel::Weight);
  static constexpr size_t kParts = Set::kManyRegisters ? 4 : 2;
  using Function = void (*)(const WindowTile<Kernel>&);
  using Table = std::array<Function, Kernel::kMostPlaces>;

  static constexpr size_t most_of(size_t parts) {
    return std::min(Kernel::kMostPlaces, most_places(Set::kManyRegisters, parts));
  }

  template <size_t kCount, size_t kPlace>
  static constexpr Function function() {
    if constexpr (kPlace <= most_of(kCount)) {
      return &Set::template run<Kernel, kPlace, kCount>;
    } else {
      return nullptr;
    }
  }
  template <size_t kCount, size_t... kPlace>
  static constexpr Table table(std::index_sequence<kPlace...>) {
    return {function<kCount, kPlace + 1>()...};
  }
  template <size_t... kCount>
  static constexpr auto tables(std::index_sequence<kCount...>) {
    return std::array{table<kCount + 1>(std::make_index_sequence<Kernel::kMostPlaces>())...};
  }
  static constexpr auto kTables =
      tables(std::make_index_sequence < Set::kManyRegisters ? 4 : 3 > ());
};

struct WindowsAvx512 {
  static constexpr bool kManyRegisters = true;
  template <typename Kernel, size_t kPlaces, size_t kParts>
  FCP_AVX512 static void run(const WindowTile<Kernel>& tile) {
    window_places<Kernel, kPlaces, kParts>(tile);
  }
};
struct WindowsAvx2 {
  static constexpr bool kManyRegisters = false;
  template <typename Kernel, size_t kPlaces, size_t kParts>
  FCP_AVX2 static void run(const WindowTile<Kernel>& tile) {
    window_places<Kernel, kPlaces, kParts>(tile);
  }
};
struct WindowsPlain {
  static constexpr bool kManyRegisters = false;
  template <typename Kernel, size_t kPlaces, size_t kParts>
  static void run(const WindowTile<Kernel>& tile) {
    window_places<Kernel, kPlaces, kParts>(tile);
  }
};

}  // namespace fcp
