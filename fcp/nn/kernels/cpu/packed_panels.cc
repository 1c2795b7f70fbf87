#include <algorithm>
#include <cstdint>

#include "fcp/nn/kernels/cpu/packed_product.h"

namespace fcp {
namespace {

// The numbers of a vector and the vectors of a panel for the processor at hand.
struct PanelShape {
  size_t step, parts;
};

template <typename Number>
PanelShape panel_shape() {
  const int width = simd_width();
  const size_t step = static_cast<size_t>(width) / 8 / sizeof(Number);
  return {step, width == 512 ? size_t{4} : size_t{2}};
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
    const size_t wide = panel_parts(outputs_ - first, shape.step, shape.parts) * shape.step;
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

}  // namespace fcp
