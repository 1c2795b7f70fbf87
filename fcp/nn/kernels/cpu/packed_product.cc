#include "fcp/nn/kernels/cpu/packed_product.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <torch/utils.h>

#include "fcp/nn/kernels/cpu/product_tile.h"

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
  ProductEpilogue<Number> end;
  Depth depth;
  bool first, last;  // among the blocks of k
};

// `most` rows at a time; a few more in two halves, because few rows leave the multipliers idle.
inline size_t strip_of(size_t left, size_t most) {
  if (left > most && left < most + most / 2 + 1) return (left + 1) / 2;
  return std::min(most, left);
}

// All rows of a block against one panel of kParts vectors.
template <typename Panel, size_t kParts>
FCP_KERNEL void multiply_strips(Tile<typename Panel::Number> tile, size_t rows) {
  constexpr size_t kMost = kParts > Panel::kParts ? kWideStripRows : kStripRows;
  while (rows > 0) {
    const size_t strip = strip_of(rows, kMost);
    tile_of_rows<Panel, kParts>(tile, strip);
    tile.a += strip * tile.pieces;
    tile.out += strip * tile.out_step;
    if (tile.end.rows != nullptr) tile.end.rows += strip;
    if (tile.end.added != nullptr) tile.end.added += strip * tile.out_step;
    rows -= strip;
  }
}

// GELU, of the columns of a panel.
inline void bend_long(const Block<double>&, size_t, size_t) {}
inline void bend_long(const Block<float>& block, size_t first, size_t columns) {
  if (is_short(block.end.activation)) return;
  float* out = block.out.at + first;
  epilogue_rows(block.end.activation, {out, nullptr, out, block.a.rows, columns,
                                       static_cast<size_t>(block.out.row_step)});
}

// All panels against the rows of a block.
template <typename Panel>
FCP_KERNEL void multiply_block(const Block<typename Panel::Number>& block) {
  using Number = typename Panel::Number;
  const size_t inputs = block.b->inputs(), outputs = block.b->outputs(), rows = block.a.rows;
  const size_t k = block.depth.first * block.a.length + block.depth.begin;
  for (size_t first = 0; first < outputs;) {
    const size_t parts = panel_parts(outputs - first, Panel::kStep, Panel::kParts);
    const size_t wide = parts * Panel::kStep, columns = std::min(wide, outputs - first);
    ProductEpilogue<Number> end;
    if (block.last) end = block.end;
    if (end.columns != nullptr) end.columns += first;
    if (end.added != nullptr) end.added += first;
    const Tile<Number> tile = {block.a.at,
                               block.a.pieces,
                               block.a.zeros,
                               block.depth,
                               block.b->numbers() + first * inputs + k * wide,
                               block.out.at + first,
                               static_cast<size_t>(block.out.row_step),
                               columns,
                               end,
                               block.first};
    if (parts == 1) multiply_strips<Panel, 1>(tile, rows);
    if (parts == 2) multiply_strips<Panel, 2>(tile, rows);
    if (parts == 3) multiply_strips<Panel, 3>(tile, rows);
    if constexpr (Panel::kParts == 4) {
      if (parts == 4) multiply_strips<Panel, 4>(tile, rows);
    }
    if (block.last) bend_long(block, first, columns);
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
                     const MatrixView<Number>& out, const ProductEpilogue<Number>& end) {
  for (size_t row = 0; row < a.rows; row += kBlockRows) {
    const size_t rows = std::min(kBlockRows, a.rows - row);
    const ptrdiff_t from = static_cast<ptrdiff_t>(row) * out.row_step;
    Block<Number> block = {};
    block.a = {a.at + row * a.pieces, rows, a.pieces, a.length, a.zeros};
    block.b = &b;
    block.out = out;
    block.out.at += from;
    block.end = end;
    if (end.rows != nullptr) block.end.rows += row;
    if (end.added != nullptr) block.end.added += from;
    multiply_depths(block);
  }
}

template <typename Number>
void multiply_panels(const MatrixView<const Number>& a, const PackedPanels<Number>& b,
                     const MatrixView<Number>& out, const ProductEpilogue<Number>& end) {
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
    const ptrdiff_t from = static_cast<ptrdiff_t>(row) * out.row_step;
    MatrixView<Number> part = out;
    part.at += from;
    ProductEpilogue<Number> part_end = end;
    if (end.rows != nullptr) part_end.rows += row;
    if (end.added != nullptr) part_end.added += from;
    multiply_pieces<Number>({pieces, rows, 1, a.columns, nullptr}, b, part, part_end);
  }
}

template void multiply_pieces(const PieceRows<float>&, const PackedPanels<float>&,
                              const MatrixView<float>&, const ProductEpilogue<float>&);
template void multiply_pieces(const PieceRows<double>&, const PackedPanels<double>&,
                              const MatrixView<double>&, const ProductEpilogue<double>&);
template void multiply_panels(const MatrixView<const float>&, const PackedPanels<float>&,
                              const MatrixView<float>&, const ProductEpilogue<float>&);
template void multiply_panels(const MatrixView<const double>&, const PackedPanels<double>&,
                              const MatrixView<double>&, const ProductEpilogue<double>&);

namespace {

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
void PackedPanels<Number>::pack(const MatrixView<const Number>& b, int width) {
  const size_t step = static_cast<size_t>(width) / 8 / sizeof(Number);  // numbers of a vector
  const size_t parts = width == 512 ? 4 : 2;                            // vectors of a panel
  inputs_ = b.rows;
  outputs_ = b.columns;
  numbers_.resize(inputs_ * ((outputs_ + step - 1) / step * step));
  for (size_t first = 0; first < outputs_;) {
    const size_t wide = panel_parts(outputs_ - first, step, parts) * step;
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

template class PackedPanels<float>;
template class PackedPanels<double>;
template class PackedPanels<int32_t>;

namespace {

// b [K, M] with any strides.
template <typename Number>
MatrixView<const Number> matrix_view(const torch::Tensor& b) {
  return {b.data_ptr<Number>(), static_cast<size_t>(b.size(0)), static_cast<size_t>(b.size(1)),
          b.stride(0), b.stride(1)};
}

// The matrix made of some tensor; of filters also whether they are finite.
template <typename MatrixOf>
std::shared_ptr<PackedMatrix> packed_from(const torch::Tensor& source, MatrixOf matrix) {
  std::shared_ptr<PackedMatrix> packed = pack_matrix(matrix(source));
  packed->finite = source.dim() == 4 && source.isfinite().all().template item<bool>();
  return packed;
}

}  // namespace

std::shared_ptr<PackedMatrix> pack_matrix(const torch::Tensor& b) {
  auto matrix = std::make_shared<PackedMatrix>();
  matrix->type = b.scalar_type();
  if (matrix->type == torch::kFloat)
    matrix->floats.pack(matrix_view<float>(b));
  else
    matrix->doubles.pack(matrix_view<double>(b));
  return matrix;
}

KnownTensor::KnownTensor(const torch::Tensor& tensor)
    : tensor_(tensor), version_(static_cast<uint32_t>(tensor._version())) {}

bool KnownTensor::is(const torch::Tensor& tensor) const {
  return tensor_.defined() && tensor_.data_ptr() == tensor.data_ptr() &&
         tensor_.sizes() == tensor.sizes() && tensor_.strides() == tensor.strides() &&
         tensor_.scalar_type() == tensor.scalar_type() && version_ == tensor._version();
}

std::shared_ptr<const PackedMatrix> PackedCache::find(const torch::Tensor& source,
                                                      MatrixOf matrix) {
  constexpr int64_t kMostKept = 1 << 23;  // numbers: copies of small weights only
  constexpr size_t kMostEntries = 3;
  if (source.numel() > kMostKept) return packed_from(source, matrix);
  const std::lock_guard lock(mutex_);
  int64_t kept = source.numel();
  for (const Entry& entry : entries_) {
    if (entry.source.is(source)) return entry.packed;
    kept += entry.numbers;
  }
  while (!entries_.empty() && (kept > kMostKept || entries_.size() >= kMostEntries)) {
    kept -= entries_.front().numbers;
    entries_.erase(entries_.begin());
  }
  entries_.push_back({KnownTensor(source), source.numel(), packed_from(source, matrix)});
  return entries_.back().packed;
}

std::shared_ptr<const PackedMatrix> PackedCache::packed(const torch::Tensor& matrix) {
  return find(matrix, [](const torch::Tensor& source) { return source; });
}

std::shared_ptr<const PackedMatrix> PackedCache::packed_filters(const torch::Tensor& filters) {
  return find(filters, [](const torch::Tensor& source) {
    return source.permute({2, 3, 1, 0}).reshape({-1, source.size(0)});
  });
}

SignedParts SignedCache::parts(const torch::Tensor& weight) {
  constexpr int64_t kMostKept = 1 << 20;
  const auto made = [&] { return SignedParts{weight.clamp_min(0), weight.clamp_max(0)}; };
  if (weight.numel() > kMostKept) return made();
  const std::lock_guard lock(mutex_);
  if (!source_.is(weight)) {
    parts_ = made();
    source_ = KnownTensor(weight);
  }
  return parts_;
}

}  // namespace fcp
