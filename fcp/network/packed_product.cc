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

// The numbers of a vector and of a panel for the processor at hand.
struct PanelShape {
  size_t step, wide;
};

template <typename Number>
PanelShape panel_shape() {
  const int width = simd_width();
  const size_t step = static_cast<size_t>(width) / 8 / sizeof(Number);
  return {step, step * (width == 512 ? 4 : 2)};
}

// One tile: rows of `a` that begin every a_step numbers, the panel `b` with all columns of each k.
template <typename Number>
struct Tile {
  const Number* a;
  size_t a_step;
  const Number* b;
  size_t depth;
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
  const Number* a = tile.a;
  const Number* b = tile.b;
  for (size_t k = 0; k < tile.depth; ++k, ++a, b += kParts * kStep) {
    Vector column[kParts];
#pragma GCC unroll 4
    for (size_t part = 0; part < kParts; ++part) {
      column[part] = *reinterpret_cast<const Vector*>(b + part * kStep);
    }
#pragma GCC unroll 8
    for (size_t i = 0; i < kRows; ++i) {
      const Number input = a[i * tile.a_step];
#pragma GCC unroll 4
      for (size_t part = 0; part < kParts; ++part) sum[i][part] += input * column[part];
    }
  }
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

// A block of rows of a, as they lie or as a copy: `in` at number (row, k).
template <typename Number>
struct Block {
  const Number* in;
  size_t in_step;
  const PackedPanels<Number>* b;
  const MatrixView<Number>* out;
  ProductBias<Number> bias;
  size_t row, rows, k, depth;
};

// Where the numbers of a row do not lie side by side.
template <typename Number>
void copy_block(const MatrixView<const Number>& a, const Block<Number>& block, Number* to) {
  const Number* from = a.at + static_cast<ptrdiff_t>(block.row) * a.row_step +
                       static_cast<ptrdiff_t>(block.k) * a.column_step;
  for (size_t j = 0; j < block.depth; ++j) {
    for (size_t i = 0; i < block.rows; ++i) {
      to[i * block.depth + j] =
          from[static_cast<ptrdiff_t>(i) * a.row_step + static_cast<ptrdiff_t>(j) * a.column_step];
    }
  }
}

// All panels against the rows of a block.
template <typename Panel>
FCP_KERNEL void multiply_block(const Block<typename Panel::Number>& block) {
  using Number = typename Panel::Number;
  constexpr size_t kWide = Panel::kParts * Panel::kStep;
  const size_t inputs = block.b->inputs(), outputs = block.b->outputs();
  const auto out_step = static_cast<size_t>(block.out->row_step);
  const bool last = block.k + block.depth == inputs;
  const Number* column_bias = last ? block.bias.columns : nullptr;
  const Number* row_bias =
      last && block.bias.rows != nullptr ? block.bias.rows + block.row : nullptr;
  for (size_t first = 0; first < outputs;) {
    const size_t wide = first + kWide <= outputs ? kWide : Panel::kStep;
    const size_t columns = std::min(wide, outputs - first);
    Tile<Number> tile = {block.in,
                         block.in_step,
                         block.b->numbers() + first * inputs + block.k * wide,
                         block.depth,
                         block.out->at + block.row * out_step + first,
                         out_step,
                         columns,
                         {column_bias == nullptr ? nullptr : column_bias + first, row_bias},
                         block.k == 0};
    for (size_t row = 0; row < block.rows; row += kStripRows) {
      const size_t strip = std::min(kStripRows, block.rows - row);
      if (wide == kWide) {
        tile_of_rows<Panel, Panel::kParts, true>(tile, strip);
      } else if (columns == Panel::kStep) {
        tile_of_rows<Panel, 1, true>(tile, strip);
      } else {
        tile_of_rows<Panel, 1, false>(tile, strip);
      }
      tile.a += strip * block.in_step;
      tile.out += strip * out_step;
      if (row_bias != nullptr) tile.bias.rows += strip;
    }
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

// A panel `wide` numbers wide: row by row, or column by column where those lie side by side.
template <typename Number>
void copy_rows(const MatrixView<const Number>& from, size_t wide, Number* to) {
  for (size_t k = 0; k < from.rows; ++k, to += wide) {
    const Number* row = from.at + static_cast<ptrdiff_t>(k) * from.row_step;
    if (from.column_step == 1) {
      std::copy_n(row, from.columns, to);
      continue;
    }
    for (size_t j = 0; j < from.columns; ++j) {
      to[j] = row[static_cast<ptrdiff_t>(j) * from.column_step];
    }
  }
}

template <typename Number>
void copy_columns(const MatrixView<const Number>& from, size_t wide, Number* to) {
  for (size_t j = 0; j < from.columns; ++j) {
    const Number* column = from.at + static_cast<ptrdiff_t>(j) * from.column_step;
    for (size_t k = 0; k < from.rows; ++k) to[k * wide + j] = column[k];
  }
}

}  // namespace

template <typename Number>
void PackedPanels<Number>::pack(const MatrixView<const Number>& b) {
  const PanelShape shape = panel_shape<Number>();
  inputs_ = b.rows;
  outputs_ = b.columns;
  numbers_.resize(inputs_ * ((outputs_ + shape.step - 1) / shape.step * shape.step));
  for (size_t first = 0; first < outputs_;) {
    const size_t wide = first + shape.wide <= outputs_ ? shape.wide : shape.step;
    const size_t columns = std::min(wide, outputs_ - first);
    Number* to = numbers_.data() + first * inputs_;
    const MatrixView<const Number> part = {b.at + static_cast<ptrdiff_t>(first) * b.column_step,
                                           inputs_, columns, b.row_step, b.column_step};
    if (columns < wide) std::fill(to, to + inputs_ * wide, Number{0});
    if (b.row_step == 1 && b.column_step != 1) {
      copy_columns(part, wide, to);
    } else {
      copy_rows(part, wide, to);
    }
    first += wide;
  }
}

template <typename Number>
void multiply_panels(const MatrixView<const Number>& a, const PackedPanels<Number>& b,
                     const MatrixView<Number>& out, const ProductBias<Number>& bias) {
  const bool lies_well = a.column_step == 1 && a.row_step >= 0;
  std::vector<Number, LineAllocator<Number>> copy;
  if (!lies_well) copy.resize(std::min(kBlockRows, a.rows) * std::min(kDepth, a.columns));
  for (size_t row = 0; row < a.rows; row += kBlockRows) {
    Block<Number> block = {nullptr, 0, &b, &out, bias, row, std::min(kBlockRows, a.rows - row),
                           0,       0};
    do {  // once, to write zeros, where there is nothing to sum
      block.depth = std::min(kDepth, a.columns - block.k);
      if (lies_well) {
        block.in_step = static_cast<size_t>(a.row_step);
        block.in = a.at + row * block.in_step + block.k;
      } else {
        block.in_step = block.depth;
        block.in = copy.data();
        copy_block(a, block, copy.data());
      }
      multiply(block);
      block.k += block.depth;
    } while (block.k < a.columns);
  }
}

template class PackedPanels<float>;
template class PackedPanels<double>;
template void multiply_panels(const MatrixView<const float>&, const PackedPanels<float>&,
                              const MatrixView<float>&, const ProductBias<float>&);
template void multiply_panels(const MatrixView<const double>&, const PackedPanels<double>&,
                              const MatrixView<double>&, const ProductBias<double>&);

}  // namespace fcp
