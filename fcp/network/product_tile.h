// The innermost loops of packed_product.h: a few rows times one panel, summed in registers. Written
// once, for the vectors of any processor; packed_product.cc compiles them for each.
#pragma once

#include <cstddef>

#include "fcp/base/lanes.h"
#include "fcp/network/packed_product.h"

namespace fcp {

constexpr size_t kStripRows = 6;

// Vectors of kBytes bytes, which may lie anywhere among numbers; kParts of them are a panel.
template <typename T, size_t kBytes, size_t kVectors>
struct PanelOf {
  using Number = T;
  typedef T Vector __attribute__((vector_size(kBytes), aligned(sizeof(T)), may_alias));
  static constexpr size_t kStep = kBytes / sizeof(T);
  static constexpr size_t kParts = kVectors;
};

// The pieces of a block of k: some whole ones, or a part of one.
struct Depth {
  size_t first, last;   // pieces
  size_t begin, count;  // numbers of each of them
};

// One tile: rows of `a`, the panel `b` with all columns of each k.
template <typename Number>
struct Tile {
  const Number* const* a;  // the pieces of the first row; those of the next follow
  size_t pieces;
  const Number* zeros;
  Depth depth;
  const Number* b;
  Number* out;
  size_t out_step;
  size_t columns;            // of the tile that exist
  ProductBias<Number> bias;  // of the tile's first column and row; null: none, or not yet
  bool first;                // nothing waits in out
};

template <typename Vector>
FCP_KERNEL Vector* vector_at(void* at) {
  return static_cast<Vector*>(at);
}

// A vector of which only `count` numbers lie in memory.
template <typename Panel>
FCP_KERNEL void load_some(const typename Panel::Number* from, size_t count,
                          typename Panel::Vector& to) {
  typename Panel::Number edge[Panel::kStep] = {};
  for (size_t i = 0; i < count; ++i) edge[i] = from[i];
  to = *vector_at<typename Panel::Vector>(edge);
}

template <typename Panel>
FCP_KERNEL void store_some(const typename Panel::Vector& from, size_t count,
                           typename Panel::Number* to) {
  typename Panel::Number edge[Panel::kStep];
  *vector_at<typename Panel::Vector>(edge) = from;
  for (size_t i = 0; i < count; ++i) to[i] = edge[i];
}

// sum += the rows' pieces times the panel.
template <typename Panel, size_t kRows, size_t kParts>
FCP_KERNEL void add_pieces(const Tile<typename Panel::Number>& tile,
                           typename Panel::Vector (*sum)[kParts]) {
  using Number = typename Panel::Number;
  typedef typename Panel::Vector Vector;
  constexpr size_t kStep = Panel::kStep;
  const Number* b = tile.b;
  for (size_t piece = tile.depth.first; piece < tile.depth.last; ++piece) {
    const Number* a[kRows];
    bool all_zeros = true;
#pragma GCC unroll 8
    for (size_t i = 0; i < kRows; ++i) {
      a[i] = tile.a[i * tile.pieces + piece];
      all_zeros = all_zeros && a[i] == tile.zeros;
      a[i] += tile.depth.begin;
    }
    if (all_zeros) {
      b += tile.depth.count * kParts * kStep;
      continue;
    }
    for (size_t k = 0; k < tile.depth.count; ++k, b += kParts * kStep) {
      Vector column[kParts];
#pragma GCC unroll 4
      for (size_t part = 0; part < kParts; ++part) {
        column[part] = *reinterpret_cast<const Vector*>(b + part * kStep);
      }
#pragma GCC unroll 8
      for (size_t i = 0; i < kRows; ++i) {
        const Number input = a[i][k];
#pragma GCC unroll 4
        for (size_t part = 0; part < kParts; ++part) sum[i][part] += input * column[part];
      }
    }
  }
}

template <typename Panel, size_t kRows, size_t kParts, bool kWhole>
FCP_KERNEL void product_tile(const Tile<typename Panel::Number>& tile) {
  using Number = typename Panel::Number;
  typedef typename Panel::Vector Vector;
  constexpr size_t kStep = Panel::kStep;
  Vector sum[kRows][kParts];
#pragma GCC unroll 8
  for (size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (size_t part = 0; part < kParts; ++part) {
      Number* out = tile.out + i * tile.out_step + part * kStep;
      sum[i][part] = Vector{};
      if (tile.first) continue;
      if constexpr (kWhole) {
        sum[i][part] = *vector_at<Vector>(out);
      } else {
        load_some<Panel>(out, tile.columns, sum[i][part]);
      }
    }
  }
  add_pieces<Panel, kRows, kParts>(tile, sum);
#pragma GCC unroll 8
  for (size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (size_t part = 0; part < kParts; ++part) {
      Number* out = tile.out + i * tile.out_step + part * kStep;
      if (tile.bias.rows != nullptr) sum[i][part] += tile.bias.rows[i];
      if constexpr (kWhole) {
        if (tile.bias.columns != nullptr) {
          sum[i][part] += *reinterpret_cast<const Vector*>(tile.bias.columns + part * kStep);
        }
        *vector_at<Vector>(out) = sum[i][part];
      } else {
        Vector bias = {};
        if (tile.bias.columns != nullptr) load_some<Panel>(tile.bias.columns, tile.columns, bias);
        if (tile.bias.columns != nullptr) sum[i][part] += bias;
        store_some<Panel>(sum[i][part], tile.columns, out);
      }
    }
  }
}

template <typename Panel, size_t kParts, bool kWhole>
FCP_KERNEL void tile_of_rows(const Tile<typename Panel::Number>& tile, size_t rows) {
  switch (rows) {
    case 1:
      return product_tile<Panel, 1, kParts, kWhole>(tile);
    case 2:
      return product_tile<Panel, 2, kParts, kWhole>(tile);
    case 3:
      return product_tile<Panel, 3, kParts, kWhole>(tile);
    case 4:
      return product_tile<Panel, 4, kParts, kWhole>(tile);
    case 5:
      return product_tile<Panel, 5, kParts, kWhole>(tile);
    default:
      return product_tile<Panel, kStripRows, kParts, kWhole>(tile);
  }
}

}  // namespace fcp
