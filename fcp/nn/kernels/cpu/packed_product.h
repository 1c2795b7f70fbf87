// The matrix product y = a · b of plain numbers, each number of y by one sequence of operations,
//
//   y_ij = ((a_i0 b_0j + a_i1 b_1j) + a_i2 b_2j) + …        k rising, whatever the shape around
//
// so that its bits depend on row i of a and column j of b alone. That order leaves all the freedom
// that speed needs, because rows and columns may be taken in any order:
//
//   b is packed into panels, as wide as two vectors (four of AVX-512), whose numbers lie in the
//   order in which they are read; the last one is as wide as is needed, three vectors rather than
//   two and one, because one alone leaves the multipliers idle;
//   six rows of a times a panel (four where it has three vectors) are a tile of y that stays in
//   registers; k goes in blocks of kDepth, between which the tile waits in y.
//
// A panel's block fits the first cache and serves all rows; a block of rows fits the second. Rows
// of a are read where they lie, and copied only where their numbers are not side by side. They may
// lie in pieces, as the window of a convolution does.
// Cost: 2 N K M operations at 0.8 of the multipliers' speed, and K M to pack b. Reference: K. Goto,
// R. van de Geijn, Anatomy of high-performance matrix multiplication (ACM TOMS 34, 2008). Tested by
// tests/nn/kernels/cpu/packed_product_test.cc.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <torch/types.h>

#include "fcp/base/lanes.h"
#include "fcp/nn/kernels/cpu/epilogue.h"

namespace fcp {

// A matrix somewhere in memory: number (i, j) lies at at[i * row_step + j * column_step].
template <typename Number>
struct MatrixView {
  Number* at = nullptr;
  size_t rows = 0, columns = 0;
  ptrdiff_t row_step = 0, column_step = 1;
};

// The vectors of the panel that begins `left` columns before the end, where `parts` are the rule
// and `step` numbers are a vector.
constexpr size_t panel_parts(size_t left, size_t step, size_t parts) {
  const size_t needed = (left + step - 1) / step;
  return parts == 2 && needed == 3 ? 3 : std::min(needed, parts);
}

// A right factor [K, M] in panels.
template <typename Number>
class PackedPanels {
 public:
  PackedPanels() = default;
  explicit PackedPanels(const MatrixView<const Number>& b) { pack(b); }
  // For loops whose vectors are `width` bits; the memory is used again.
  void pack(const MatrixView<const Number>& b, int width = simd_width());

  size_t inputs() const { return inputs_; }
  size_t outputs() const { return outputs_; }
  const Number* numbers() const { return numbers_.data(); }

 private:
  size_t inputs_ = 0, outputs_ = 0;
  std::vector<Number, LineAllocator<Number>> numbers_;
};

// What becomes of the sums: a number for each row is added, one for each column, one for each
// number, which lie as the result does (null: nothing), then the activation, of floats only.
template <typename Number>
struct ProductEpilogue {
  const Number* rows = nullptr;
  const Number* columns = nullptr;
  const Number* added = nullptr;
  FusedActivation activation = {};
};

// A left factor whose rows lie in `pieces` pieces of `length` numbers each, one after the other in
// a row: piece p of row i at at[i * pieces + p]. Pieces at `zeros` hold zeros and may be skipped.
template <typename Number>
struct PieceRows {
  const Number* const* at = nullptr;
  size_t rows = 0, pieces = 1, length = 0;
  const Number* zeros = nullptr;
};

// out = a · b and what follows; out.column_step is 1. One thread.
template <typename Number>
void multiply_panels(const MatrixView<const Number>& a, const PackedPanels<Number>& b,
                     const MatrixView<Number>& out, const ProductEpilogue<Number>& end = {});
template <typename Number>
void multiply_pieces(const PieceRows<Number>& a, const PackedPanels<Number>& b,
                     const MatrixView<Number>& out, const ProductEpilogue<Number>& end = {});

// A right factor, packed, in either type.

struct PackedMatrix {
  torch::ScalarType type = torch::kFloat;
  PackedPanels<float> floats;
  PackedPanels<double> doubles;
  bool finite = false;  // known to have neither infinities nor NaN
};

// b [K, M] with any strides.
std::shared_ptr<PackedMatrix> pack_matrix(const torch::Tensor& b);

// What operators keep of their constant weights: packed for these loops, or split
// by sign. A copy is made once, at the first use, and found again by the tensor it was made of.
// Tested by tests/nn/kernels/cpu/row_product_test.cc.

struct PackedMatrix;  // a right factor, as the loops want it

// A tensor, and whether another one is the same, to be looked up after it: views such as a
// transpose are new tensors at every call, and are known by what they look at.
class KnownTensor {
 public:
  KnownTensor() = default;
  explicit KnownTensor(const torch::Tensor& tensor);
  bool is(const torch::Tensor& tensor) const;

 private:
  torch::Tensor tensor_;  // held, so that nothing else comes to lie at its place
  uint32_t version_ = 0;
};

// The right factors that were packed last, for an operator whose weights are constants: they, and
// their positive and negative parts.
class PackedCache {
 public:
  std::shared_ptr<const PackedMatrix> packed(const torch::Tensor& matrix);

  // Filters [M, C, y, x] as the matrix [y · x · C, M].
  std::shared_ptr<const PackedMatrix> packed_filters(const torch::Tensor& filters);

 private:
  using MatrixOf = torch::Tensor (*)(const torch::Tensor&);
  std::shared_ptr<const PackedMatrix> find(const torch::Tensor& source, MatrixOf matrix);

  struct Entry {
    KnownTensor source;
    int64_t numbers = 0;
    std::shared_ptr<const PackedMatrix> packed;
  };

  std::mutex mutex_;
  std::vector<Entry> entries_;  // the oldest first
};

// The positive and the negative part of the last weights asked about, where they are small.
struct SignedParts {
  torch::Tensor plus, minus;
};
class SignedCache {
 public:
  SignedParts parts(const torch::Tensor& weight);

 private:
  std::mutex mutex_;
  KnownTensor source_;
  SignedParts parts_;
};

}  // namespace fcp
