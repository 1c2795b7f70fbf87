// Rows in memory as a source of rows: of the public API, of Python's arrays, of a server's state.
// Tested by tests/api/api_test.cc and tests/python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/data/rows.h"
#include "fcp/predictor/input_schema.h"

namespace fcp::internal {

struct TensorRowsOptions {
  std::string name = "x";              // of the rows, in Errors
  const SchemaData* schema = nullptr;  // checks and converts each batch; none: that has been done
  int64_t before = 0;                  // rows that came before these, in Errors
  std::function<void()> on_batch{};    // called before each
};

// Rows x [N, …] and their answers y [N, …], on any device: one batch at a time is staged in host
// memory. An undefined y: there are no answers. The schema must outlive the rows.
class TensorRows : public RowSource {
 public:
  // An Error where an answer is NaN, or there are not as many as rows.
  TensorRows(torch::Tensor x, const torch::Tensor& y, TensorRowsOptions options = {});

  // The next rows, at most `count`, in the caller's memory where that can be; false: none are left.
  bool next_batch(size_t count, BatchData& out);
  // The answers of `count` rows from `first` on, [count, K]: float32, or double where float32
  // numbers are too coarse for them (fcp/training/training_data.h).
  torch::Tensor answers(int64_t first, int64_t count) const;

  bool next(size_t count, Rows& out) override;
  void rewind() override { next_ = 0; }
  std::optional<size_t> size() const override { return static_cast<size_t>(x_.size(0)); }
  const std::vector<int64_t>& row_shape() const override { return row_shape_; }
  size_t target_count() const override;

 private:
  torch::Tensor x_, y_;
  TensorRowsOptions options_;
  std::vector<int64_t> row_shape_;
  int64_t next_ = 0;
  bool exact_ = false;  // answers are doubles
};

// As many numbers for each of the rows, [rows, K], which y must outlive.
torch::Tensor answers_over(std::span<const float> y, int64_t rows);

}  // namespace fcp::internal
