// One float32 number per row in the memory of the host, as most networks answer: plain scores go
// over it in one loop, where tensors would go over it once for each operation. The numbers are
// computed with as doubles, in the same order as the tensors would, so that the bits are the same.
#pragma once

#include <cstdint>
#include <optional>

#include <torch/types.h>

#include "fcp/scores/score.h"

namespace fcp {

template <typename Number>
struct Column {
  const Number* first;
  int64_t step;

  double operator[](int64_t row) const { return static_cast<double>(first[row * step]); }
};

// [N], [N, 1], …; none where it is of another type or device, or has several numbers per row.
template <typename Number>
std::optional<Column<Number>> column_of(const torch::Tensor& numbers) {
  constexpr torch::ScalarType kType =
      sizeof(Number) == sizeof(float) ? torch::kFloat : torch::kDouble;
  const bool plain = numbers.is_cpu() && numbers.scalar_type() == kType && numbers.dim() > 0 &&
                     numbers.numel() == numbers.size(0) && !numbers.requires_grad();
  if (!plain) return std::nullopt;
  return Column<Number>{numbers.data_ptr<Number>(), numbers.stride(0)};
}

// Intervals of `rows` rows with one output each, to be filled in. Both ends are of one tensor,
// [2, N, 1], so that a caller who wants them as such need not copy them.
struct RegionColumns {
  explicit RegionColumns(int64_t rows)
      : RegionColumns(rows, torch::empty({2, rows, 1}, torch::kDouble)) {}

  RegionColumns(int64_t rows, const torch::Tensor& ends)
      : regions{torch::empty({rows, 1}, torch::kDouble), ends[0], ends[1], {}},
        prediction(regions.prediction.data_ptr<double>()),
        lower(regions.lower.data_ptr<double>()),
        upper(regions.upper.data_ptr<double>()) {}

  Regions regions;
  double* prediction;
  double* lower;
  double* upper;
};

}  // namespace fcp
