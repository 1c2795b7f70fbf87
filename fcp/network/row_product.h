// Arithmetic whose bits do not depend on what stands beside a row. A library's matrix product takes
// another order of summation for other numbers of rows, and its vector loops another function for
// the last few numbers: equal rows of different batches then differ in their last bits, and with
// them ties between scores break, which on discrete data is worth several per cent of coverage.
//
// Here every number is computed by one sequence of operations, whatever the shape around it:
//
//   row_product   y = a · b        Σ_k a_ik b_kj, k rising (packed_product.h)
//   each_alike    y_i = f(x_i)     libtorch's f on tiles that its vectors fill without a remainder
//   sum_rows      y_i = Σ_j x_ij   in a fixed order; sum_along the same along any axes
//
// On the CPU, in float and double; elsewhere they are libtorch's own. Gradients flow through all of
// them, and the products of the way back are row products too.
//
// Cost: 2 N K M operations. Packing a right factor costs K M; a PackedCache keeps it. Tested by
// tests/network/row_product_test.cc.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include <torch/types.h>

namespace fcp {

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

 private:
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

// a [..., K] · b [K, M] + bias → [..., M]; bias undefined or something that broadcasts.
torch::Tensor row_product(const torch::Tensor& a, const torch::Tensor& b,
                          PackedCache* cache = nullptr, const torch::Tensor& bias = {});

// f, which computes each number by itself, of x.
torch::Tensor each_alike(const std::function<torch::Tensor(const torch::Tensor&)>& f,
                         const torch::Tensor& x);

// The sum of each row of x [N, …] → [N].
torch::Tensor sum_rows(const torch::Tensor& x);

// The sum of x along `axes`, which are sorted and counted from the front.
torch::Tensor sum_along(const torch::Tensor& x, const std::vector<int64_t>& axes, bool keep_axes);

// Σ_d a_snd b_nd of a [S, N, D] and b [N, D] → [S, N].
torch::Tensor row_dots(const torch::Tensor& a, const torch::Tensor& b);

}  // namespace fcp
