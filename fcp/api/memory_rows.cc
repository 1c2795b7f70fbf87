#include "fcp/api/memory_rows.h"

#include <algorithm>
#include <cmath>

#include "fcp/base/error.h"

namespace fcp::internal {

MemoryRows::MemoryRows(const torch::Tensor& x, std::span<const float> y)
    : x_(x.contiguous()), y_(y), rows_(static_cast<size_t>(x.size(0))) {
  row_shape_.assign(x.sizes().begin() + 1, x.sizes().end());
  if (y.empty() || y.size() % rows_ != 0) {
    fail("y: found ", y.size(), " numbers for ", rows_, " rows of x");
  }
  targets_ = y.size() / rows_;
  for (size_t i = 0; i < y.size(); ++i) {
    if (!std::isnan(y[i])) continue;
    fail("y: row ", i / targets_, " (from 0) has NaN in column ", i % targets_,
         ", expected a number");
  }
}

bool MemoryRows::next(size_t count, Rows& out) {
  const size_t rows = std::min(count, rows_ - next_);
  if (rows == 0) return false;
  static const std::string kName = "x";
  out.first_row = next_;
  out.stand_in(kName, next_);
  const torch::Tensor x = x_.narrow(0, static_cast<int64_t>(next_), static_cast<int64_t>(rows));
  const torch::Tensor floats = x.to(torch::kFloat);
  out.x = {};
  out.x.shape = x.sizes().vec();
  out.x.values.assign(floats.data_ptr<float>(), floats.data_ptr<float>() + floats.numel());
  if (x.scalar_type() == torch::kDouble) {
    out.x.exact.assign(x.data_ptr<double>(), x.data_ptr<double>() + x.numel());
  }
  out.y = {};
  out.y.shape = {static_cast<int64_t>(rows), static_cast<int64_t>(targets_)};
  const auto truths = y_.subspan(next_ * targets_, rows * targets_);
  out.y.values.assign(truths.begin(), truths.end());
  next_ += rows;
  return true;
}

}  // namespace fcp::internal
