#include "fcp/network/packed_product.h"

#include <algorithm>
#include <vector>

#include "fcp/network/product_tile.h"

namespace fcp {
namespace {

constexpr size_t kDepth = 256;      // values of k per block
constexpr size_t kBlockRows = 240;  // a multiple of kStripRows

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
