#include "fcp/data/table_rows.h"

#include <algorithm>
#include <utility>

namespace fcp {
namespace {

Array rows_of(const Array& array, size_t first, size_t count) {
  Array part;
  part.shape = array.shape;
  part.shape[0] = static_cast<int64_t>(count);
  const size_t width = array.row_size();
  const auto begin = array.values.begin() + static_cast<std::ptrdiff_t>(first * width);
  part.values.assign(begin, begin + static_cast<std::ptrdiff_t>(count * width));
  return part;
}

}  // namespace

TableRows::TableRows(const RowSource& whole, const Rows& all, std::vector<size_t> numbers)
    : whole_(whole),
      numbers_(std::move(numbers)),
      x_(take_rows(all.x, numbers_)),
      y_(take_rows(all.y, numbers_)) {}

bool TableRows::next(size_t count, Rows& out) {
  const size_t rows = std::min(count, numbers_.size() - next_);
  out.first_row = next_;
  out.x = rows_of(x_, next_, rows);
  out.y = rows_of(y_, next_, rows);
  next_ += rows;
  return rows > 0;
}

}  // namespace fcp
