#include "fcp/network/packed_product.h"

#include <algorithm>
#include <vector>

namespace fcp {
namespace {

constexpr size_t kStripRows = 6;
constexpr size_t kDepth = 256;      // values of k per block
constexpr size_t kBlockRows = 240;  // a multiple of kStripRows

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

// A block of rows and of k.
template <typename Number>
struct Block {
  PieceRows<Number> a;
  const PackedPanels<Number>* b;
  MatrixView<Number> out;
  ProductBias<Number> bias;
  Depth depth;
  bool first, last;  // among the blocks of k
  size_t row;        // of the whole product
  const PanelDone* done;
};

// Six rows at a time; seven to nine in two halves, because a few rows leave the multipliers idle.
inline size_t strip_of(size_t left) {
  if (left > kStripRows && left < kStripRows + 4) return (left + 1) / 2;
  return std::min(kStripRows, left);
}

// All panels against the rows of a block.
template <typename Panel>
FCP_KERNEL void multiply_block(const Block<typename Panel::Number>& block) {
  using Number = typename Panel::Number;
  constexpr size_t kWide = Panel::kParts * Panel::kStep;
  const size_t inputs = block.b->inputs(), outputs = block.b->outputs();
  const auto out_step = static_cast<size_t>(block.out.row_step);
  const size_t k = block.depth.first * block.a.length + block.depth.begin;
  const Number* column_bias = block.last ? block.bias.columns : nullptr;
  for (size_t first = 0; first < outputs;) {
    const size_t wide = first + kWide <= outputs ? kWide : Panel::kStep;
    const size_t columns = std::min(wide, outputs - first);
    Tile<Number> tile = {block.a.at,
                         block.a.pieces,
                         block.a.zeros,
                         block.depth,
                         block.b->numbers() + first * inputs + k * wide,
                         block.out.at + first,
                         out_step,
                         columns,
                         {column_bias == nullptr ? nullptr : column_bias + first,
                          block.last ? block.bias.rows : nullptr},
                         block.first};
    for (size_t left = block.a.rows; left > 0;) {
      const size_t strip = strip_of(left);
      if (wide == kWide) {
        tile_of_rows<Panel, Panel::kParts, true>(tile, strip);
      } else if (columns == Panel::kStep) {
        tile_of_rows<Panel, 1, true>(tile, strip);
      } else {
        tile_of_rows<Panel, 1, false>(tile, strip);
      }
      tile.a += strip * block.a.pieces;
      tile.out += strip * out_step;
      if (tile.bias.rows != nullptr) tile.bias.rows += strip;
      left -= strip;
    }
    if (block.last && block.done != nullptr) (*block.done)(block.row, block.a.rows, first, columns);
    first += wide;
  }
}

FCP_AVX512 void multiply_avx512(const Block<float>& block) {
  multiply_block<PanelOf<float, 64, 4>>(block);
}
FCP_AVX512 void multiply_avx512(const Block<double>& block) {
  multiply_block<PanelOf<double, 64, 4>>(block);
}
FCP_AVX2 void multiply_avx2(const Block<float>& block) {
  multiply_block<PanelOf<float, 32, 2>>(block);
}
FCP_AVX2 void multiply_avx2(const Block<double>& block) {
  multiply_block<PanelOf<double, 32, 2>>(block);
}
void multiply_plain(const Block<float>& block) { multiply_block<PanelOf<float, 16, 2>>(block); }
void multiply_plain(const Block<double>& block) { multiply_block<PanelOf<double, 16, 2>>(block); }

template <typename Number>
void multiply(const Block<Number>& block) {
  const int width = simd_width();
  if (width == 512) return multiply_avx512(block);
  if (width == 256) return multiply_avx2(block);
  multiply_plain(block);
}

// All blocks of k, for rows that fit the second cache.
template <typename Number>
void multiply_depths(Block<Number> block) {
  const size_t length = block.a.length, pieces = block.a.pieces;
  block.first = true;
  if (length == 0 || pieces == 0) {  // nothing to sum: zeros
    block.depth = {0, 0, 0, 0};
    block.last = true;
    return multiply(block);
  }
  const size_t parts = (length + kDepth - 1) / kDepth;  // of a long piece
  const size_t blocks = (length * pieces + kDepth - 1) / kDepth;
  const size_t together = parts > 1 ? 1 : (pieces + blocks - 1) / blocks;
  for (size_t piece = 0; piece < pieces; piece += together) {
    for (size_t begin = 0; begin < length; begin += kDepth) {
      block.depth = {piece, std::min(pieces, piece + together), begin,
                     std::min(kDepth, length - begin)};
      block.last = block.depth.last == pieces && begin + block.depth.count == length;
      multiply(block);
      block.first = false;
    }
  }
}

// Where the numbers of a row do not lie side by side.
template <typename Number>
void copy_block(const MatrixView<const Number>& a, size_t row, size_t rows, Number* to) {
  const Number* from = a.at + static_cast<ptrdiff_t>(row) * a.row_step;
  for (size_t j = 0; j < a.columns; ++j) {
    for (size_t i = 0; i < rows; ++i) {
      to[i * a.columns + j] =
          from[static_cast<ptrdiff_t>(i) * a.row_step + static_cast<ptrdiff_t>(j) * a.column_step];
    }
  }
}

}  // namespace

template <typename Number>
void multiply_pieces(const PieceRows<Number>& a, const PackedPanels<Number>& b,
                     const MatrixView<Number>& out, const ProductBias<Number>& bias,
                     const PanelDone* done) {
  for (size_t row = 0; row < a.rows; row += kBlockRows) {
    const size_t rows = std::min(kBlockRows, a.rows - row);
    Block<Number> block = {};
    block.a = {a.at + row * a.pieces, rows, a.pieces, a.length, a.zeros};
    block.b = &b;
    block.out = out;
    block.out.at += static_cast<ptrdiff_t>(row) * out.row_step;
    block.bias = bias;
    if (bias.rows != nullptr) block.bias.rows += row;
    block.row = row;
    block.done = done;
    multiply_depths(block);
  }
}

template <typename Number>
void multiply_panels(const MatrixView<const Number>& a, const PackedPanels<Number>& b,
                     const MatrixView<Number>& out, const ProductBias<Number>& bias,
                     const PanelDone* done) {
  std::vector<Number, LineAllocator<Number>> copy;
  const Number* pieces[kBlockRows];
  for (size_t row = 0; row < a.rows; row += kBlockRows) {
    const size_t rows = std::min(kBlockRows, a.rows - row);
    if (a.column_step != 1) {
      copy.resize(rows * a.columns);
      copy_block(a, row, rows, copy.data());
    }
    for (size_t i = 0; i < rows; ++i) {
      pieces[i] = a.column_step != 1 ? copy.data() + i * a.columns
                                     : a.at + static_cast<ptrdiff_t>(row + i) * a.row_step;
    }
    MatrixView<Number> part = out;
    part.at += static_cast<ptrdiff_t>(row) * out.row_step;
    ProductBias<Number> part_bias = bias;
    if (bias.rows != nullptr) part_bias.rows += row;
    const PanelDone shifted = [&](size_t, size_t count, size_t column, size_t columns) {
      (*done)(row, count, column, columns);
    };
    multiply_pieces<Number>({pieces, rows, 1, a.columns, nullptr}, b, part, part_bias,
                            done == nullptr ? nullptr : &shifted);
  }
}

template void multiply_pieces(const PieceRows<float>&, const PackedPanels<float>&,
                              const MatrixView<float>&, const ProductBias<float>&,
                              const PanelDone*);
template void multiply_pieces(const PieceRows<double>&, const PackedPanels<double>&,
                              const MatrixView<double>&, const ProductBias<double>&,
                              const PanelDone*);
template void multiply_panels(const MatrixView<const float>&, const PackedPanels<float>&,
                              const MatrixView<float>&, const ProductBias<float>&,
                              const PanelDone*);
template void multiply_panels(const MatrixView<const double>&, const PackedPanels<double>&,
                              const MatrixView<double>&, const ProductBias<double>&,
                              const PanelDone*);

}  // namespace fcp
