// The innermost loops of packed_product.h: a few rows times one panel, summed in registers. Written
// once, for the vectors of any processor; packed_product.cc compiles them for each.
#pragma once

#include <cstddef>

#include "fcp/base/lanes.h"
#include "fcp/nn/kernels/cpu/epilogue.h"
#include "fcp/nn/kernels/cpu/packed_product.h"

namespace fcp {

constexpr size_t kStripRows = 6;      // by as many vectors as a panel has
constexpr size_t kWideStripRows = 4;  // by one more

// Vectors of kBytes bytes, which may lie anywhere among numbers; kParts of them are a panel.
template <typename T, size_t kBytes, size_t kVectors>
struct PanelOf {
  using Number = T;
  typedef T Vector __attribute__((vector_size(kBytes), aligned(sizeof(T)), may_alias));
  typedef Vector Type;
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
  size_t columns;               // of the tile that exist: the last vector may have fewer
  ProductEpilogue<Number> end;  // of the tile's first column and row; null: none, or not yet
  bool first;                   // nothing waits in out
};

template <typename Vector>
FCP_KERNEL Vector* vector_at(void* at) {
  return static_cast<Vector*>(at);
}

// Vector `part` of the kParts of a row, the last of which may have only `last` numbers in memory.
template <typename Panel, size_t kParts>
FCP_KERNEL void load_part(const typename Panel::Number* row, size_t part, size_t last,
                          typename Panel::Vector* to) {
  typedef typename Panel::Vector Vector;
  const typename Panel::Number* from = row + part * Panel::kStep;
  if (part + 1 < kParts || last == Panel::kStep) {
    *to = *reinterpret_cast<const Vector*>(from);
    return;
  }
  typename Panel::Number edge[Panel::kStep] = {};
  for (size_t i = 0; i < last; ++i) edge[i] = from[i];
  *to = *vector_at<Vector>(edge);
}

template <typename Panel, size_t kParts>
FCP_KERNEL void store_part(const typename Panel::Vector* from, size_t part, size_t last,
                           typename Panel::Number* row) {
  typedef typename Panel::Vector Vector;
  typename Panel::Number* to = row + part * Panel::kStep;
  if (part + 1 < kParts || last == Panel::kStep) {
    *vector_at<Vector>(to) = *from;
    return;
  }
  typename Panel::Number edge[Panel::kStep];
  *vector_at<Vector>(edge) = *from;
  for (size_t i = 0; i < last; ++i) to[i] = edge[i];
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

// What is added to the sums.
template <typename Panel, size_t kRows, size_t kParts>
FCP_KERNEL void add_end(const Tile<typename Panel::Number>& tile, size_t last,
                        typename Panel::Vector (*sum)[kParts]) {
  const ProductEpilogue<typename Panel::Number>& end = tile.end;
#pragma GCC unroll 8
  for (size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (size_t part = 0; part < kParts; ++part) {
      typename Panel::Vector more;
      if (end.rows != nullptr) sum[i][part] += end.rows[i];
      if (end.columns != nullptr) {
        load_part<Panel, kParts>(end.columns, part, last, &more);
        sum[i][part] += more;
      }
      if (end.added != nullptr) {
        load_part<Panel, kParts>(end.added + i * tile.out_step, part, last, &more);
        sum[i][part] += more;
      }
    }
  }
}

template <typename Panel, size_t kRows, size_t kParts, ActivationKind kKind>
FCP_KERNEL void activate_sums(const FusedActivation& with, typename Panel::Vector (*sum)[kParts]) {
#pragma GCC unroll 8
  for (size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (size_t part = 0; part < kParts; ++part) activate_floats<Panel, kKind>(with, &sum[i][part]);
  }
}

// The short ones; packed_product.cc does the others.
template <typename Panel, size_t kRows, size_t kParts>
FCP_KERNEL void activate_tile(const FusedActivation& with, typename Panel::Vector (*sum)[kParts]) {
  if constexpr (sizeof(typename Panel::Number) == sizeof(float)) {
    switch (with.kind) {
      case ActivationKind::kRelu:
        return activate_sums<Panel, kRows, kParts, ActivationKind::kRelu>(with, sum);
      case ActivationKind::kClip:
        return activate_sums<Panel, kRows, kParts, ActivationKind::kClip>(with, sum);
      case ActivationKind::kHardSwish:
        return activate_sums<Panel, kRows, kParts, ActivationKind::kHardSwish>(with, sum);
      case ActivationKind::kHardSigmoid:
        return activate_sums<Panel, kRows, kParts, ActivationKind::kHardSigmoid>(with, sum);
      default:
        return;
    }
  }
}

template <typename Panel, size_t kRows, size_t kParts>
FCP_KERNEL void product_tile(const Tile<typename Panel::Number>& tile) {
  typedef typename Panel::Vector Vector;
  const size_t last = tile.columns - (kParts - 1) * Panel::kStep;
  Vector sum[kRows][kParts];
#pragma GCC unroll 8
  for (size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (size_t part = 0; part < kParts; ++part) {
      sum[i][part] = Vector{};
      if (!tile.first) {
        load_part<Panel, kParts>(tile.out + i * tile.out_step, part, last, &sum[i][part]);
      }
    }
  }
  add_pieces<Panel, kRows, kParts>(tile, sum);
  add_end<Panel, kRows, kParts>(tile, last, sum);
  activate_tile<Panel, kRows, kParts>(tile.end.activation, sum);
#pragma GCC unroll 8
  for (size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (size_t part = 0; part < kParts; ++part) {
      store_part<Panel, kParts>(&sum[i][part], part, last, tile.out + i * tile.out_step);
    }
  }
}

template <typename Panel, size_t kParts>
FCP_KERNEL void tile_of_rows(const Tile<typename Panel::Number>& tile, size_t rows) {
  if constexpr (kParts <= Panel::kParts) {
    if (rows == 6) return product_tile<Panel, 6, kParts>(tile);
    if (rows == 5) return product_tile<Panel, 5, kParts>(tile);
  }
  switch (rows) {
    case 1:
      return product_tile<Panel, 1, kParts>(tile);
    case 2:
      return product_tile<Panel, 2, kParts>(tile);
    case 3:
      return product_tile<Panel, 3, kParts>(tile);
    default:
      return product_tile<Panel, 4, kParts>(tile);
  }
}

}  // namespace fcp
