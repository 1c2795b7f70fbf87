#include "fcp/data/table_rows.h"

#include <algorithm>
#include <utility>

namespace fcp {
TableRows::TableRows(const RowSource& whole, const Rows& all, std::vector<size_t> numbers)
    : whole_(whole),
      numbers_(std::move(numbers)),
      x_(take_rows(all.x, numbers_)),
      y_(take_rows(all.y, numbers_)) {}

bool TableRows::next(size_t count, Rows& out) {
  const size_t rows = std::min(count, numbers_.size() - next_);
  out.first_row = next_;
  out.x = slice_rows(x_, next_, rows);
  out.y = slice_rows(y_, next_, rows);
  next_ += rows;
  return rows > 0;
}

}  // namespace fcp
