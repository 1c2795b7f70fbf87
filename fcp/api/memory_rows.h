// Rows in memory as a source of rows, for calibration and evaluation.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/data/rows.h"

namespace fcp::internal {

class MemoryRows : public RowSource {
 public:
  // x [N, …] float or double on the host; y has as many numbers for each row and must outlive this.
  MemoryRows(const torch::Tensor& x, std::span<const float> y);

  bool next(size_t count, Rows& out) override;
  void rewind() override { next_ = 0; }
  std::optional<size_t> size() const override { return rows_; }
  const std::vector<int64_t>& row_shape() const override { return row_shape_; }
  size_t target_count() const override { return targets_; }

 private:
  torch::Tensor x_;
  std::span<const float> y_;
  std::vector<int64_t> row_shape_;
  size_t rows_ = 0, targets_ = 0, next_ = 0;
};

}  // namespace fcp::internal
