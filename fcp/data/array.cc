#include "fcp/data/array.h"

#include <algorithm>
#include <limits>

#include "fcp/base/error.h"

namespace fcp {

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

size_t element_count(std::span<const int64_t> shape) {
  // Eight bytes for each element must be addressable, whatever its type.
  constexpr uint64_t kLimit = std::numeric_limits<int64_t>::max() / 8;
  const bool negative = std::any_of(shape.begin(), shape.end(), [](int64_t n) { return n < 0; });
  if (negative) fail("shape ", shape_text(shape), " has a negative size");
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  uint64_t count = 1;
  for (const int64_t size : shape) {
    if (static_cast<uint64_t>(size) > kLimit / count) {
      fail("shape ", shape_text(shape), " has too many elements for this machine");
    }
    count *= static_cast<uint64_t>(size);
  }
  return count;
}

size_t Array::row_size() const {
  return shape.empty() ? 0 : element_count(std::span(shape).subspan(1));
}

std::span<const float> Array::row(size_t index) const {
  const size_t size = row_size();
  return std::span(values).subspan(index * size, size);
}

Array zeros(std::vector<int64_t> shape) {
  const size_t count = element_count(shape);
  return {std::move(shape), std::vector<float>(count)};
}

void append_rows(const Array& some, Array& all) {
  if (all.shape.empty()) {
    all = some;
    return;
  }
  all.shape[0] += some.shape[0];
  all.values.insert(all.values.end(), some.values.begin(), some.values.end());
  all.exact.insert(all.exact.end(), some.exact.begin(), some.exact.end());
}

Array slice_rows(const Array& array, size_t first, size_t count) {
  Array part{array.shape, {}};
  part.shape[0] = static_cast<int64_t>(count);
  const auto begin = static_cast<std::ptrdiff_t>(first * array.row_size());
  const auto end = begin + static_cast<std::ptrdiff_t>(count * array.row_size());
  part.values.assign(array.values.begin() + begin, array.values.begin() + end);
  if (!array.exact.empty()) {
    part.exact.assign(array.exact.begin() + begin, array.exact.begin() + end);
  }
  return part;
}

Array take_rows(const Array& array, std::span<const size_t> indices) {
  const size_t size = array.row_size();
  Array taken = array.shape.empty() ? Array{{0}, {}} : Array{array.shape, {}};
  taken.shape[0] = static_cast<int64_t>(indices.size());
  const auto take = [&](const auto& from, auto& to) {
    if (from.empty()) return;
    to.reserve(indices.size() * size);
    for (const size_t index : indices) {
      const auto first = from.begin() + static_cast<std::ptrdiff_t>(index * size);
      to.insert(to.end(), first, first + static_cast<std::ptrdiff_t>(size));
    }
  };
  for (const size_t index : indices) {
    if (index < array.rows()) continue;
    fail("row ", index, " asked of an array of ", array.rows(), " rows");
  }
  take(array.values, taken.values);
  take(array.exact, taken.exact);
  return taken;
}

}  // namespace fcp
