// What operators keep of their constant weights: packed for the loops of packed_product.h, or split
// by sign. A copy is made once, at the first use, and found again by the tensor it was made of.
// Tested by tests/nn/kernels/cpu/row_product_test.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <torch/types.h>

namespace fcp {

struct PackedMatrix;  // a right factor, as the loops want it: packed_matrix.h

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
