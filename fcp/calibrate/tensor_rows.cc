#include "fcp/calibrate/tensor_rows.h"

#include <algorithm>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/training/training_data.h"

namespace fcp::internal {
namespace {

// Rows as float32, and as double where that is asked for, on the host in memory of their own.
Array staged(const torch::Tensor& rows, bool exact = false) {
  Array array;
  array.shape = rows.sizes().vec();
  if (rows.is_cpu() && rows.is_contiguous() && rows.scalar_type() == torch::kFloat) {
    array.values.assign(rows.data_ptr<float>(), rows.data_ptr<float>() + rows.numel());
  } else {
    array.values.resize(static_cast<size_t>(rows.numel()));
    torch::from_blob(array.values.data(), array.shape, torch::kFloat).copy_(rows);
  }
  if (exact) {
    array.exact.resize(array.values.size());
    torch::from_blob(array.exact.data(), array.shape, torch::kDouble).copy_(rows);
  }
  return array;
}

void check_answers(const torch::Tensor& y) {
  const auto found = MissingNumbers(Graph()).find_refused(y);
  if (!found) return;
  fail("y: row ", found->row, " (from 0) has NaN in column ", found->column, ", expected a number");
}

}  // namespace

TensorRows::TensorRows(torch::Tensor x, const torch::Tensor& y, TensorRowsOptions options)
    : x_(std::move(x)), options_(std::move(options)) {
  row_shape_.assign(x_.sizes().begin() + 1, x_.sizes().end());
  if (!y.defined()) return;
  y_ = y.flatten(1);
  if (y_.size(0) != x_.size(0)) {
    fail(options_.name, " has ", x_.size(0), " rows, y has ", y_.size(0));
  }
  check_answers(y_);
  exact_ = y_.scalar_type() == torch::kDouble && !target_offsets(staged(y_, true)).empty();
}

size_t TensorRows::target_count() const {
  return y_.defined() ? static_cast<size_t>(y_.size(1)) : 0;
}

torch::Tensor TensorRows::answers(int64_t first, int64_t count) const {
  return y_.narrow(0, first, count).to(torch::kCPU, exact_ ? torch::kDouble : torch::kFloat);
}

bool TensorRows::next_batch(size_t count, BatchData& out) {
  if (options_.on_batch) options_.on_batch();
  const int64_t first = next_;
  const int64_t rows = std::min<int64_t>(static_cast<int64_t>(count), x_.size(0) - first);
  if (rows <= 0) return false;
  out = {};
  out.row_name = [name = options_.name, from = options_.before + first](size_t row) {
    return concat(name, ": row ", from + static_cast<int64_t>(row), " (from 0)");
  };
  out.x = x_.narrow(0, first, rows);
  if (options_.schema != nullptr) out.x = options_.schema->checked(out.x, out.row_name);
  next_ += rows;
  return true;
}

bool TensorRows::next(size_t count, Rows& out) {
  const int64_t first = next_;
  BatchData batch;
  if (!next_batch(count, batch)) return false;
  out.first_row = static_cast<size_t>(first);
  out.stand_in(options_.name, out.first_row);
  out.x = staged(batch.x, batch.x.scalar_type() == torch::kDouble);
  out.y = y_.defined() ? staged(answers(first, batch.x.size(0)), exact_) : Array();
  return true;
}

torch::Tensor answers_over(std::span<const float> y, int64_t rows) {
  const auto count = static_cast<int64_t>(y.size());
  if (y.empty() || count % rows != 0) {
    fail("y: found ", count, " numbers for ", rows, " rows of x");
  }
  return torch::from_blob(const_cast<float*>(y.data()), {rows, count / rows}, torch::kFloat);
}

}  // namespace fcp::internal
