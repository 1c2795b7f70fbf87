#include "fcp/nn/kernels/cpu/packed_cache.h"

#include <torch/utils.h>

#include "fcp/nn/kernels/cpu/packed_matrix.h"

namespace fcp {
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
